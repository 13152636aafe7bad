import { readKey } from "../http/key.js";

/** What came of an attempt: a closed list, so that every kind has an answer. */
export type AttemptResult =
  /** Nothing left: no address, no connection. */
  | "not-sent"
  /** Something left, and no complete answer came back. */
  | "unanswered"
  /** The other side says that it ran nothing of this attempt. */
  | "nothing-ran"
  | "in-flight"
  | "key-reused"
  | "in-doubt"
  | "not-retained"
  | "gone"
  | "success"
  /** Refused before it began, and worth another try. */
  | "not-now"
  | "refused"
  /** It failed somewhere on its way, perhaps after its effect. */
  | "failed";

/** What to do about an attempt of a request that may be sent again. */
export type Verdict = "success" | "retry" | "wait" | "never" | "unknown";

/** What an attempt says. */
export interface Reading {
  readonly result: AttemptResult;
  readonly verdict: Verdict;
  /** What its client is asked to wait. */
  readonly toldMs?: number | undefined;
  /** Whether it is the kept answer of an earlier attempt. */
  readonly replayed: boolean;
  /** Whether whoever answered had looked at the key. */
  readonly knowsKey: boolean;
}

/** A response that was received whole. */
export interface Received {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

/** A problem document is short; what is longer is not read as one. */
const PROBLEM_BYTES_MAX = 64 << 10;

/** What our own refusals say beyond their status. */
const REFUSALS: Readonly<Record<string, AttemptResult>> = {
  "key-in-flight": "in-flight",
  "key-reused": "key-reused",
  "outcome-in-doubt": "in-doubt",
  "response-not-retained": "not-retained",
  "key-gone": "gone",
  "first-sent-too-old": "gone",
  "body-incomplete": "nothing-ran",
  "caller-unverifiable": "nothing-ran",
  "deadline-passed": "nothing-ran",
  "execution-not-started": "nothing-ran",
  overloaded: "nothing-ran",
  "shutting-down": "nothing-ran",
  "store-quarantined": "nothing-ran",
  "store-unavailable": "nothing-ran",
  "stored-by-newer-version": "nothing-ran",
  "transaction-rolled-back": "nothing-ran",
};

const VERDICTS: Readonly<Record<AttemptResult, Verdict>> = {
  "not-sent": "retry",
  unanswered: "retry",
  "nothing-ran": "retry",
  "in-flight": "wait",
  "key-reused": "never",
  "in-doubt": "unknown",
  "not-retained": "never",
  gone: "never",
  success: "success",
  "not-now": "retry",
  refused: "never",
  failed: "retry",
};

/** What an attempt says that nobody answered. */
export function unanswered(result: "not-sent" | "unanswered"): Reading {
  return { result, verdict: VERDICTS[result], replayed: false, knowsKey: false };
}

/** What an answer says: ours, Stripe's, anybody's. */
export function read(received: Received, key: string | undefined): Reading {
  const { status, headers } = received;
  const replayed = isTrue(headers, "idempotent-replayed") === true;
  const knowsKey = replayed || headers.has("idempotency-expires") || isRepeated(headers, key);
  if (status >= 200 && status < 300) return { result: "success", verdict: "success", replayed, knowsKey };
  const toldMs = told(headers);
  const shouldRetry = isTrue(headers, "stripe-should-retry");
  let result = refused(received);
  // Stripe, and others like it, have no code for a key in flight.
  const isAskedBack = toldMs !== undefined || shouldRetry === true;
  if (status === 409 && result === "refused" && key !== undefined && isAskedBack) result = "in-flight";
  return { result, verdict: verdict(result, replayed, shouldRetry), toldMs, replayed, knowsKey };
}

function verdict(result: AttemptResult, replayed: boolean, shouldRetry: boolean | undefined): Verdict {
  const usual = VERDICTS[result];
  if ((usual === "retry" || usual === "wait") && shouldRetry === false) return "never";
  // What is kept under the key will be said again, however often it is asked for.
  if (usual === "retry" && replayed) return "never";
  return usual === "never" && shouldRetry === true && !replayed ? "retry" : usual;
}

function refused(received: Received): AttemptResult {
  const code = refusalCode(received);
  return (code === undefined ? undefined : REFUSALS[code]) ?? ofStatus(received.status);
}

/** The code of a refusal of our own: a problem document that is marked, or whose type and code agree. */
function refusalCode({ headers, body }: Received): string | undefined {
  const type = headers.get("content-type")?.split(";", 1)[0]?.trim().toLowerCase();
  if (type !== "application/problem+json") return undefined;
  const mark = headers.get("hapax-refusal");
  if (mark !== null) return mark;
  if (body.length > PROBLEM_BYTES_MAX) return undefined;
  try {
    const document: unknown = JSON.parse(Buffer.from(body).toString());
    const { type, code } = (document ?? {}) as { type?: unknown; code?: unknown };
    return typeof type === "string" && typeof code === "string" && type.split("/").at(-1) === code ? code : undefined;
  } catch {
    return undefined;
  }
}

function ofStatus(status: number): AttemptResult {
  if ((status >= 200 && status < 300) || status === 303 || status === 304) return "success";
  if ([408, 425, 429].includes(status)) return "not-now";
  // A redirect is not followed: it would send the request, and its key, to somebody else.
  return (status >= 300 && status < 500) || status === 501 || status === 505 ? "refused" : "failed";
}

/** What `Retry-After` says as a span from now; a date is read against the `Date` of the answer itself. */
export function told(headers: Headers, now: () => number = Date.now): number | undefined {
  const value = headers.get("retry-after")?.trim();
  if (value === undefined) return undefined;
  if (/^[0-9]+$/.test(value)) return Number(value) * 1000;
  const until = httpDate(value);
  if (until === undefined) return undefined;
  return Math.max(0, until - (httpDate(headers.get("date") ?? "") ?? now()));
}

/** `Date.parse` reads much that is no date of HTTP. */
function httpDate(value: string): number | undefined {
  const at = Date.parse(value);
  return Number.isNaN(at) || new Date(at).toUTCString() !== value ? undefined : at;
}

function isRepeated(headers: Headers, key: string | undefined): boolean {
  const line = headers.get("idempotency-key");
  if (line === null || key === undefined) return false;
  const read = readKey([line]);
  return "key" in read && read.key === key;
}

function isTrue(headers: Headers, name: string): boolean | undefined {
  const value = headers.get(name)?.toLowerCase();
  return value === "true" ? true : value === "false" ? false : undefined;
}
