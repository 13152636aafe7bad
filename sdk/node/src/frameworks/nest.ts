import { buffer } from "node:stream/consumers";

import {
  createParamDecorator,
  HttpException,
  SetMetadata,
  StreamableFile,
  type CallHandler,
  type CustomDecorator,
  type ExecutionContext,
  type NestInterceptor,
} from "@nestjs/common";
import { from, lastValueFrom, type Observable } from "rxjs";

import { ending, Refused } from "../answer.js";
import { InvalidError } from "../errors.js";
import type { Hapax } from "../hapax.js";
import { exchange, type ProtectionOptions, type RouteOptions } from "../http/exchange.js";
import { keptBody, keyLines, type Incoming } from "../http/incoming.js";
import type { Reply } from "../http/problem.js";

export type { ProtectionOptions, RouteOptions } from "../http/exchange.js";

const ROUTE = Symbol.for("hapax-once:route");
const TX = Symbol.for("hapax-once:tx");

/** Protects a route, or all routes of a controller: one answer for each key. */
export function Once(options: RouteOptions = {}): CustomDecorator<symbol> {
  return SetMetadata(ROUTE, options);
}

/** The transaction of a protected route, as a parameter of its handler. */
export const Tx = createParamDecorator((_data: unknown, context: ExecutionContext) => {
  const { [TX]: tx } = context.switchToHttp().getRequest<{ [TX]?: unknown }>();
  if (tx === undefined) throw new Error("the route is not protected: add @Once(), and the interceptor");
  return tx;
});

/** What is looked at of a request of Nest, on Express or Fastify. */
export type NestRequest = Incoming & {
  readonly method: string;
  readonly originalUrl: string;
  readonly raw?: Incoming;
  [TX]?: unknown;
};

/** What is set of a response of Nest, on Express or Fastify. */
interface NestResponse {
  statusCode: number;
  status(code: number): unknown;
  header(name: string, value: string | readonly string[]): unknown;
  getHeaders(): NodeJS.Dict<unknown>;
  removeHeader(name: string): unknown;
}

/**
 * Protects the routes with `@Once()`: what a handler returns is sent after it was committed, and sent again to every retry with the key.
 *
 * A handler may run more than once before that. An `HttpException` with a status that is kept is stored as Nest itself would answer it; what
 * else it throws is rolled back and goes on to the exception filters.
 */
export class OnceInterceptor<Transaction, Request extends object = NestRequest> implements NestInterceptor {
  readonly #hapax: Hapax<Transaction>;
  readonly #options: ProtectionOptions<Request>;

  /** `Request` is that of the adapter: Express's or Fastify's. */
  constructor(hapax: Hapax<Transaction>, options: ProtectionOptions<Request>) {
    this.#hapax = hapax;
    this.#options = options;
  }

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const route = [context.getHandler(), context.getClass()]
      .map((on) => Reflect.getMetadata(ROUTE, on) as RouteOptions | undefined)
      .find(Boolean);
    if (context.getType() !== "http" || route === undefined) return next.handle();
    return from(this.#protect(context, next, { ...this.#options, ...route }));
  }

  async #protect(context: ExecutionContext, next: CallHandler, options: ProtectionOptions<Request>): Promise<unknown> {
    const request = context.switchToHttp().getRequest<NestRequest & Request>();
    const response = context.switchToHttp().getResponse<NestResponse>();
    const { statusCode: statusBefore } = response;
    const headersBefore = { ...response.getHeaders() };
    const handle = async (tx: Transaction) => {
      request[TX] = tx;
      try {
        return await recorded(response, headersBefore, await lastValueFrom(next.handle(), { defaultValue: undefined }));
      } catch (error) {
        throw refusal(error);
      } finally {
        response.status(statusBefore);
        for (const name of Object.keys(response.getHeaders()))
          if (!(name in headersBefore)) response.removeHeader(name);
      }
    };
    const { status, headers, body } = await exchange(
      this.#hapax,
      arrival(request),
      () => options.tenant(request),
      options,
      handle,
    );
    response.status(status);
    for (const [name, value] of Object.entries(headers)) response.header(name, value);
    return body.length === 0
      ? undefined
      : new StreamableFile(body, { type: String(headers["content-type"] ?? "application/octet-stream") });
  }
}

function arrival(request: NestRequest) {
  const { method, originalUrl: target, headers } = request;
  const remedy = "let Nest keep them, `NestFactory.create(AppModule, { rawBody: true })`";
  const body = keptBody(Object.assign(request.raw ?? request, { rawBody: request.rawBody }), remedy);
  if (body === undefined) throw new InvalidError(`nobody has read the body of the request: ${remedy}`);
  return { method, target, keyLines: keyLines(request.raw ?? request), contentType: headers["content-type"], body };
}

/** A refusal that is kept, in the words of Nest's own filter. */
function refusal(error: unknown): unknown {
  if (!(error instanceof HttpException) || ending(error.getStatus()) !== "fail") return error;
  const said = error.getResponse();
  const value = typeof said === "object" ? said : { statusCode: error.getStatus(), message: said };
  return new Refused({
    status: error.getStatus(),
    headers: { "content-type": JSON_TYPE },
    body: JSON.stringify(value),
  });
}

const JSON_TYPE = "application/json; charset=utf-8";

/** What a handler returned, in the bytes that Nest would send. */
async function recorded(response: NestResponse, headersBefore: NodeJS.Dict<unknown>, value: unknown): Promise<Reply> {
  const set = Object.entries(response.getHeaders()).filter(([name, value]) => value !== headersBefore[name]);
  const headers = Object.fromEntries(
    set.map(([name, value]) => [name, Array.isArray(value) ? value.map(String) : String(value)]),
  );
  const reply = (type: string, body: string | Buffer) => ({
    status: response.statusCode,
    headers: { "content-type": type, ...headers },
    body: Buffer.from(body as string),
  });
  if (value === undefined || value === null) return { status: response.statusCode, headers, body: Buffer.alloc(0) };
  if (value instanceof StreamableFile)
    return reply(value.getHeaders().type ?? "application/octet-stream", await buffer(value.getStream()));
  return typeof value === "object"
    ? reply(JSON_TYPE, JSON.stringify(value))
    : reply("text/html; charset=utf-8", String(value));
}
