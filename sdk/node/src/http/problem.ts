/** What this package refuses a request with: the status and the sentence of each. */
const PROBLEMS = {
  "key-missing": [400, "The request has no idempotency key"],
  "key-malformed": [400, "The idempotency key is malformed"],
  "key-empty": [400, "The idempotency key is empty"],
  "key-too-long": [400, "The idempotency key is too long"],
  "key-repeated": [400, "The idempotency key was sent more than once"],
  "key-reused": [422, "The idempotency key was used for another request"],
  "key-in-flight": [409, "A request with this idempotency key is in progress"],
  "key-gone": [410, "The idempotency key is past its retention"],
  "credential-missing": [401, "The request has no credential"],
  "scope-unusable": [400, "The path cannot name an operation"],
  "body-too-large": [413, "The request is too large"],
  "outcome-in-doubt": [409, "Nobody knows whether the operation happened"],
  "outcome-not-recorded": [503, "The outcome could not be recorded"],
  "response-not-retained": [409, "The operation was done and its response was not kept"],
  "stored-response-corrupt": [500, "The stored response is damaged"],
  "stored-by-newer-version": [503, "The stored record was written by a newer version"],
  "store-unavailable": [503, "The store cannot be asked"],
  "transaction-rolled-back": [503, "The operation was rolled back"],
} as const satisfies Record<string, readonly [status: number, title: string]>;

export type Code = keyof typeof PROBLEMS;

export const CODES = Object.keys(PROBLEMS) as readonly Code[];

/** A response as it is sent. */
export interface Reply {
  readonly status: number;
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: Buffer;
}

export interface ProblemDetails {
  /** After how many seconds to ask again. */
  readonly retryAfter?: number | undefined;
  /** Which parts of the request differ. */
  readonly differs?: readonly string[] | undefined;
}

/** A refusal as a problem document of RFC 9457. */
export function problem(code: Code, detail: string, { retryAfter, differs }: ProblemDetails = {}): Reply {
  const [status, title] = PROBLEMS[code];
  const type = `/.well-known/idempotency/errors/${code}`;
  return {
    status,
    headers: {
      "content-type": "application/problem+json",
      "content-language": "en",
      "cache-control": "no-store",
      "hapax-refusal": code,
      link: `<${type}>; rel="describedby"`,
      ...(retryAfter === undefined ? {} : { "retry-after": String(retryAfter) }),
    },
    body: Buffer.from(JSON.stringify({ type, title, status, detail, code, differs })),
  };
}
