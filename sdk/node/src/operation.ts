import type { Isolation, Value } from "./database.js";
import { InvalidError } from "./errors.js";
import { bytes } from "./answer.js";

/** What is done once, and what makes two requests for it the same. */
export interface Operation {
  /** Who the caller has proved to be, never what it says of itself. */
  readonly tenant: string;
  /** Usually the method, a space and the path. */
  readonly scope: string;
  readonly key: string;
  /** What is compared, besides method, path and query where there are any. */
  readonly request?: string | Uint8Array | undefined;
  readonly method?: string | undefined;
  readonly path?: string | undefined;
  readonly query?: string | undefined;
  /** How long the answer is kept: a day if it is not said. */
  readonly retentionMs?: number | undefined;
  /** How long after that a late retry hears that it is gone, instead of running again. */
  readonly tombstoneMs?: number | undefined;
  /** How long to wait while another transaction has it: 2 s if it is not said, 60 s at most. */
  readonly waitMs?: number | undefined;
  /** Of the transaction that `once` begins. */
  readonly isolation?: Isolation | undefined;
}

const RETENTION_MS = 24 * 60 * 60 * 1000;
export const WAIT_MS = 2000;
const TENANT_LENGTH_MAX = 255;
const SCOPE_LENGTH_MAX = 1024;
export const KEY_LENGTH_MAX = 255;

/** The arguments of hapax.begin_bytes. */
export function begunWith(operation: Operation): readonly Value[] {
  return [
    named("tenant", operation.tenant, TENANT_LENGTH_MAX),
    named("scope", operation.scope, SCOPE_LENGTH_MAX),
    named("key", operation.key, KEY_LENGTH_MAX),
    bytes(valued("request", operation.request ?? "")),
    text("method", operation.method ?? ""),
    text("path", operation.path ?? ""),
    text("query", operation.query ?? ""),
    interval("retentionMs", operation.retentionMs ?? RETENTION_MS),
    interval("tombstoneMs", operation.tombstoneMs ?? 0),
    interval("waitMs", operation.waitMs ?? WAIT_MS),
  ];
}

/** A name of 1 to so many visible ASCII characters and spaces, not spaces alone. */
export function named(what: string, value: unknown, lengthMax: number): string {
  if (typeof value !== "string") throw new InvalidError(`the ${what} has to be a text`);
  if (value.length > lengthMax)
    throw new InvalidError(`the ${what} has ${value.length} characters, and may have ${lengthMax}`);
  if (!isName(value))
    throw new InvalidError(`the ${what} has to be of visible ASCII characters: ${JSON.stringify(value)}`);
  return value;
}

/** Whether there are visible ASCII characters and spaces in it, and not spaces alone. */
export function isName(value: string): boolean {
  return /^(?=.*[!-~])[ -~]+$/.test(value);
}

export function text(what: string, value: unknown): string {
  if (typeof value !== "string") throw new InvalidError(`the ${what} has to be a text`);
  return value;
}

export function valued(what: string, value: unknown): string | Uint8Array {
  if (typeof value !== "string" && !(value instanceof Uint8Array))
    throw new InvalidError(`the ${what} has to be a text or bytes`);
  return value;
}

/** A span as PostgreSQL reads it; the limits are the functions' own. */
export function interval(what: string, millis: unknown): string {
  if (typeof millis !== "number" || !Number.isFinite(millis) || millis < 0) {
    throw new InvalidError(`${what} has to be a number of milliseconds`);
  }
  return `${Math.round(millis)} milliseconds`;
}
