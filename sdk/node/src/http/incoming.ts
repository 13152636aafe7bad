import type { IncomingMessage } from "node:http";

import { InvalidError } from "../errors.js";

/** A request of Node's server whose body somebody may have read. */
export type Incoming = IncomingMessage & { rawBody?: unknown; body?: unknown };

/** The lines of `Idempotency-Key`, each by itself where the server tells them apart. */
export function keyLines(
  request: Pick<IncomingMessage, "headers"> & { headersDistinct?: NodeJS.Dict<string[]> },
): readonly string[] {
  const lines = request.headersDistinct?.["idempotency-key"] ?? request.headers["idempotency-key"] ?? [];
  return [lines].flat();
}

/**
 * The bytes of a body that a parser has kept, or that are the body itself; nothing if nobody has read it.
 *
 * A body that was parsed and is gone cannot be compared: a parser drops digits and members.
 */
export function keptBody(request: Incoming, remedy: string): Buffer | undefined {
  const { rawBody, body } = request;
  for (const bytes of [rawBody, body]) {
    if (Buffer.isBuffer(bytes)) return bytes;
    if (typeof bytes === "string") return Buffer.from(bytes);
  }
  if (!hasBody(request)) return Buffer.alloc(0);
  if (!request.readableDidRead) return undefined;
  throw new InvalidError(`the body was parsed, and its bytes are gone: ${remedy}`);
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}
