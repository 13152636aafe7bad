import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";

import type {
  FastifyInstance,
  FastifyReply,
  FastifyRequest,
  preParsingAsyncHookHandler,
  RouteHandlerMethod,
} from "fastify";

import type { Hapax } from "../hapax.js";
import { exchange, type ProtectionOptions, type RouteOptions } from "../http/exchange.js";
import { keyLines } from "../http/incoming.js";
import type { Reply } from "../http/problem.js";
import { hungUp } from "./recorder.js";

export type { ProtectionOptions, RouteOptions } from "../http/exchange.js";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Whether the route is protected: one answer for each key. */
    once?: boolean | RouteOptions;
  }
}

/** A plugin, which also gives a handler its transaction. */
export interface FastifyIdempotency<Tx> {
  (app: FastifyInstance): Promise<void>;
  /** The transaction of a request to a protected route. */
  tx(request: FastifyRequest): Tx;
}

/**
 * A plugin of Fastify that protects the routes with `config: { once: true }`: what a handler answers is sent after it was committed, and
 * sent again to every retry with the key.
 *
 * A handler may run more than once before that. What it throws is rolled back and goes on to the error handler.
 */
export function idempotency<Tx>(hapax: Hapax<Tx>, options: ProtectionOptions<FastifyRequest>): FastifyIdempotency<Tx> {
  const transactions = new WeakMap<FastifyRequest, { readonly tx: Tx }>();

  async function plugin(app: FastifyInstance): Promise<void> {
    app.addHook("onRoute", (route) => {
      const once = route.config?.once;
      if (once === undefined || once === false) return;
      route.preParsing = [keepBody, ...[route.preParsing ?? []].flat()];
      route.handler = protectedHandler(route.handler, once === true ? options : { ...options, ...once });
    });
  }

  function protectedHandler(
    handler: RouteHandlerMethod,
    protection: ProtectionOptions<FastifyRequest>,
  ): RouteHandlerMethod {
    return async function (this: FastifyInstance, request, reply) {
      const recorder = new ReplyRecorder(reply);
      const said = await exchange(
        hapax,
        arrival(request),
        () => options.tenant(request),
        protection,
        async (tx) => {
          transactions.set(request, { tx });
          return await recorder.record(() => handler.call(this, request, reply));
        },
      );
      return reply
        .code(said.status)
        .headers(said.headers as Record<string, string | string[]>)
        .send(said.body);
    };
  }

  function tx(request: FastifyRequest): Tx {
    const found = transactions.get(request);
    if (found === undefined)
      throw new Error("the route is not protected: register the plugin before it, and add `config: { once: true }`");
    return found.tx;
  }

  // For the instance it is registered on, as with the package `fastify-plugin`.
  return Object.assign(plugin, {
    tx,
    [Symbol.for("skip-override")]: true,
    [Symbol.for("fastify.display-name")]: "hapax-once",
  });
}

const bodies = new WeakMap<FastifyRequest, Buffer[]>();

/** Keeps what a parser reads. */
const keepBody: preParsingAsyncHookHandler = async (request, _reply, payload) => {
  const chunks: Buffer[] = [];
  bodies.set(request, chunks);
  async function* kept() {
    for await (const chunk of payload as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      yield chunk;
    }
  }
  // Fastify compares it with the length that was announced.
  const length = { get: () => chunks.reduce((sum, chunk) => sum + chunk.length, 0) };
  return Object.defineProperty(Readable.from(kept(), { objectMode: false }), "receivedEncodedLength", length);
};

function arrival(request: FastifyRequest) {
  const { method, url: target, headers } = request;
  const body = Buffer.concat(bodies.get(request) ?? []);
  return { method, target, keyLines: keyLines(request.raw), contentType: headers["content-type"], body };
}

/** Keeps what a handler replies, in the bytes that Fastify would send. */
class ReplyRecorder {
  readonly #reply: FastifyReply;
  readonly #statusBefore: number;
  readonly #headersBefore: ReturnType<FastifyReply["getHeaders"]>;

  constructor(reply: FastifyReply) {
    this.#reply = reply;
    this.#statusBefore = reply.statusCode;
    this.#headersBefore = { ...reply.getHeaders() };
  }

  async record(handle: () => unknown): Promise<Reply> {
    const reply = this.#reply;
    try {
      return await this.#said(handle);
    } finally {
      // The real ones are the prototype's.
      Reflect.deleteProperty(reply, "send");
      Reflect.deleteProperty(reply, "then");
      for (const name of Object.keys(reply.getHeaders())) reply.removeHeader(name);
      reply.code(this.#statusBefore).headers(this.#headersBefore);
    }
  }

  async #said(handle: () => unknown): Promise<Reply> {
    const reply = this.#reply;
    const sent = new Promise<unknown>((resolve) => {
      reply.send = (payload?: unknown) => {
        resolve(payload);
        return reply;
      };
    });
    // A handler that returns its reply would wait for what is sent after the handler.
    Object.assign(reply, { then: undefined });
    const returned = await handle();
    const payload =
      returned === undefined || returned === reply ? await Promise.race([sent, hungUp(reply.raw)]) : returned;
    if (payload instanceof Error) throw payload;
    const body = await this.#serialized(payload);
    const set = Object.entries(reply.getHeaders()).filter(([name, value]) => value !== this.#headersBefore[name]);
    const headers = Object.fromEntries(
      set.map(([name, value]) => [name, Array.isArray(value) ? value : String(value)]),
    );
    return { status: reply.statusCode, headers, body };
  }

  async #serialized(payload: unknown): Promise<Buffer> {
    const reply = this.#reply;
    const type = (usual: string) => reply.hasHeader("content-type") || reply.type(usual);
    if (payload === undefined || payload === null) return Buffer.alloc(0);
    if (payload instanceof Readable || payload instanceof Uint8Array) {
      type("application/octet-stream");
      return payload instanceof Readable ? await buffer(payload) : Buffer.from(payload);
    }
    if (typeof payload === "string") {
      type("text/plain; charset=utf-8");
      return Buffer.from(payload);
    }
    type("application/json; charset=utf-8");
    return Buffer.from(reply.serialize(payload) as string);
  }
}
