import { InvalidError } from "./errors.js";

/** A text for each name, or a list of texts for a header that is repeated. */
export type AnswerHeaders = Readonly<Record<string, string | readonly string[]>>;

/** What work says: it is stored, and every later call hears it. */
export interface AnswerInit {
  /** From 100 to 599; 200 if it is not said. */
  readonly status?: number | undefined;
  readonly headers?: AnswerHeaders | undefined;
  readonly body?: string | Uint8Array | undefined;
}

/** What was said the first time, byte for byte. */
export interface Answer {
  readonly status: number;
  /** By names in lower case. */
  readonly headers: AnswerHeaders;
  readonly body: Buffer;
  /** Whether an earlier call said it. */
  readonly replayed: boolean;
  /** Until when it is kept; absent if it is not. */
  readonly expiresAt?: Date | undefined;
}

/** A value as JSON, as the answer of some work. */
export function json(status: number, value: unknown, headers: AnswerHeaders = {}): AnswerInit {
  return { status, headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(value) };
}

/** The work failed for good: its writes are taken back, and every retry hears this. */
export class Refused extends Error {
  constructor(readonly answer: AnswerInit) {
    super(`refused for good with ${answer.status ?? 400}`);
    this.name = "Refused";
  }
}

/** How a transaction ends whose work gave this answer. */
export type Ending = "finish" | "fail" | "rollback";

/** Statuses below 500 that say nothing about the operation itself. */
const NOT_ABOUT_THE_OPERATION = new Set([401, 403, 408, 413, 425, 429]);

export function ending(status: number): Ending {
  if (status < 400) return "finish";
  return status >= 500 || NOT_ABOUT_THE_OPERATION.has(status) ? "rollback" : "fail";
}

/** An answer with everything in it, in one spelling. */
export function whole(init: AnswerInit, usualStatus: number): Omit<Answer, "replayed" | "expiresAt"> {
  if (typeof init !== "object" || init === null) {
    throw new InvalidError("the work has to return an answer: { status, headers, body }");
  }
  const { status = usualStatus, headers = {}, body = "" } = init;
  if (!Number.isInteger(status) || status < 100 || status > 599) {
    throw new InvalidError(`${status} is no status: write a number from 100 to 599`);
  }
  if (typeof body !== "string" && !(body instanceof Uint8Array)) {
    throw new InvalidError("the body of an answer is a text or bytes; for other values there is json(status, value)");
  }
  const named = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  return { status, headers: Object.fromEntries(named), body: bytes(body) };
}

/** The bytes of a text or of bytes, without a copy of the latter. */
export function bytes(value: string | Uint8Array): Buffer {
  if (typeof value === "string") return Buffer.from(value);
  return Buffer.isBuffer(value) ? value : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
}
