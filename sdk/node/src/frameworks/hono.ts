import type { Context, Env, Input } from "hono";

import type { Hapax } from "../hapax.js";
import { exchange, type ProtectionOptions, type RouteOptions } from "../http/exchange.js";
import { keyLines } from "../http/incoming.js";
import type { Reply } from "../http/problem.js";

export type { ProtectionOptions, RouteOptions } from "../http/exchange.js";

/** A handler that answers as ever, and writes with the transaction. */
export type HonoHandler<Tx, E extends Env, Path extends string, In extends Input, Out extends Response> = (
  context: Context<E, Path, In>,
  tx: Tx,
) => Out | Promise<Out>;

/**
 * Protects handlers of Hono: what one answers is sent after it was committed, and sent again to every retry with the key.
 *
 * A handler may run more than once before that. What it throws is rolled back and goes on to `app.onError`.
 */
export function idempotency<Tx>(hapax: Hapax<Tx>, options: ProtectionOptions<Context>) {
  return <E extends Env, Path extends string, In extends Input, Out extends Response>(
      handler: HonoHandler<Tx, E, Path, In, Out>,
      route: RouteOptions = {},
    ) =>
    async (context: Context<E, Path, In>): Promise<Out> => {
      const { raw } = context.req;
      const url = new URL(raw.url);
      const arrival = {
        method: raw.method,
        target: url.pathname + url.search,
        keyLines: lines(context),
        contentType: raw.headers.get("content-type") ?? undefined,
        // Hono keeps it, so that the handler can read it once more.
        body: new Uint8Array(await context.req.arrayBuffer()),
      };
      const tenant = () => options.tenant(context);
      const reply = await exchange(hapax, arrival, tenant, { ...options, ...route }, async (tx) =>
        recorded(await handler(context, tx)),
      );
      return response(reply) as Out;
    };
}

/** On Node the server knows whether the header came twice; elsewhere the lines are one. */
function lines(context: Context): readonly string[] {
  const { incoming } = (context.env ?? {}) as { incoming?: Parameters<typeof keyLines>[0] };
  if (incoming !== undefined) return keyLines(incoming);
  const line = context.req.raw.headers.get("idempotency-key");
  return line === null ? [] : [line];
}

async function recorded(response: Response): Promise<Reply> {
  const headers: Record<string, string | string[]> = Object.fromEntries(response.headers);
  const cookies = response.headers.getSetCookie();
  if (cookies.length > 0) headers["set-cookie"] = cookies;
  return { status: response.status, headers, body: Buffer.from(await response.arrayBuffer()) };
}

function response({ status, headers, body }: Reply): Response {
  const pairs = Object.entries(headers).flatMap(([name, value]) =>
    [value].flat().map((one): [string, string] => [name, one]),
  );
  // These have no body, and `Response` refuses even an empty one.
  const isBodiless = [101, 204, 205, 304].includes(status);
  return new Response(isBodiless ? null : new Uint8Array(body), { status, headers: pairs });
}
