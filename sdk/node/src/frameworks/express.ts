import type { Request, RequestHandler, Response } from "express";

import type { Hapax } from "../hapax.js";
import { exchange, isJson, type ProtectionOptions, type RouteOptions } from "../http/exchange.js";
import { keptBody, keyLines, type Incoming } from "../http/incoming.js";
import { problem, type Reply } from "../http/problem.js";
import { Recorder } from "./recorder.js";

export type { ProtectionOptions, RouteOptions } from "../http/exchange.js";

export interface ExpressOptions extends ProtectionOptions<Request> {
  /** The largest body that is read here: 1 MiB if it is not said. What a parser has read has the parser's limit. */
  readonly bodyBytesMax?: number;
}

/** A handler that answers as ever, and writes with the transaction. */
export type ExpressHandler<Tx> = (request: Request, response: Response, tx: Tx) => unknown;

const BODY_BYTES_MAX = 1 << 20;

/**
 * Protects handlers of Express: what one answers is sent after it was committed, and sent again to every retry with the key.
 *
 * A handler may run more than once before that. What it throws is rolled back and goes on to `next`.
 */
export function idempotency<Tx>(hapax: Hapax<Tx>, options: ExpressOptions) {
  return (handler: ExpressHandler<Tx>, route: RouteOptions = {}): RequestHandler =>
    async (request, response, next) => {
      try {
        const reply = await protect(hapax, { ...options, ...route }, request, response, handler);
        if (reply !== undefined) Recorder.send(response, reply);
      } catch (error) {
        next(error);
      }
    };
}

/** For parsers in front of a protected handler: `express.json({ verify: keepRawBody })`. */
export function keepRawBody(request: object, _response: unknown, bytes: Buffer): void {
  (request as Incoming).rawBody = bytes;
}

async function protect<Tx>(
  hapax: Hapax<Tx>,
  options: ExpressOptions,
  request: Request,
  response: Response,
  handler: ExpressHandler<Tx>,
): Promise<Reply | undefined> {
  const bytesMax = options.bodyBytesMax ?? BODY_BYTES_MAX;
  const body =
    keptBody(request, "let the parser keep them, `express.json({ verify: keepRawBody })`") ??
    (await read(request, bytesMax));
  if (body === undefined) return problem("body-too-large", `A request may have ${bytesMax} bytes.`);
  const { method, originalUrl: target, headers } = request;
  const arrival = { method, target, keyLines: keyLines(request), contentType: headers["content-type"], body };
  const recorder = new Recorder(response);
  return await exchange(
    hapax,
    arrival,
    () => options.tenant(request),
    options,
    (tx) => recorder.record(() => handler(request, response, tx)),
  );
}

/** Reads a body that no parser has read, as `express.json()` or `express.raw()` would; nothing if it is too large. */
async function read(request: Incoming, bytesMax: number): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    length += chunk.length;
    // The rest is read and dropped, so that the client hears the answer.
    if (length <= bytesMax) chunks.push(chunk);
  }
  if (length > bytesMax) return undefined;
  const body = Buffer.concat(chunks);
  request.rawBody = body;
  request.body = isJson(request.headers["content-type"]) && body.length > 0 ? parsed(body) : body;
  return body;
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch (cause) {
    throw Object.assign(new SyntaxError("the body is not JSON", { cause }), { status: 400, expose: true });
  }
}
