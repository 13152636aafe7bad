import { setTimeout as sleep } from "node:timers/promises";

import { bytes } from "../answer.js";
import { quoteKey } from "../http/key.js";
import type { ClientAnswer } from "./client.js";
import { History, type Conclusion } from "./history.js";
import { pauseAfter, pauseInFlight, type Schedule } from "./pauses.js";
import { read, unanswered, type Reading, type Received } from "./reading.js";

/** Everything that is needed to pursue a request: it has a key, or its method is idempotent. */
export interface Pursuit extends Schedule {
  readonly method: string;
  readonly url: string;
  readonly headers: Headers;
  readonly body: Buffer;
  readonly key: string | undefined;
  /** One limit over all attempts and pauses. */
  readonly deadlineMs: number;
  /** How long one attempt may take. */
  readonly attemptMs: number;
  /** Whether it may have been sent before, by somebody who is gone. */
  readonly isTakenOver?: boolean;
}

/** What came of it. */
export interface Pursued {
  readonly conclusion: Conclusion;
  readonly key: string | undefined;
  readonly attempts: number;
  /** The last answer, if the last attempt had one. */
  readonly answer: ClientAnswer | undefined;
  /** Why the last attempt had none. */
  readonly cause: unknown;
}

const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS", "TRACE"]);
/** Nothing has left when one of these is the cause. */
const NOT_SENT = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EADDRNOTAVAIL",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** Sends a request, and again until there is something to say or its time is over. */
export async function pursue(pursuit: Pursuit): Promise<Pursued> {
  const ends = performance.now() + pursuit.deadlineMs;
  const history = new History({
    isTakenOver: pursuit.isTakenOver ?? false,
    readsOnly: SAFE_METHODS.has(pursuit.method),
  });
  let failures = 0;
  for (let attempts = 1; ; attempts++) {
    const left = Math.max(1, Math.floor(ends - performance.now()));
    const { reading, received, begun, cause } = await attempt(pursuit, Math.min(left, pursuit.attemptMs));
    history.note(reading, received?.status, begun);
    if (reading.verdict === "retry") failures++;
    const pause = pauseBefore(pursuit, reading, failures);
    if (pause === undefined || pause >= ends - performance.now()) {
      const { key } = pursuit;
      const answer = received && {
        ...received,
        body: bytes(received.body),
        key,
        attempts,
        replayed: reading.replayed,
        recorded: false,
      };
      return { conclusion: history.conclusion(), key, attempts, answer, cause };
    }
    await sleep(pause);
  }
}

function pauseBefore(schedule: Schedule, { verdict, toldMs }: Reading, failures: number): number | undefined {
  if (verdict === "retry") return pauseAfter(schedule, failures, toldMs);
  return verdict === "wait" ? pauseInFlight(schedule, toldMs) : undefined;
}

interface Attempt {
  readonly reading: Reading;
  readonly received?: Received;
  /** The status of an answer that began and broke off. */
  readonly begun?: number | undefined;
  readonly cause?: unknown;
}

async function attempt({ method, url, headers, body, key }: Pursuit, timeMs: number): Promise<Attempt> {
  const sent = new Headers(headers);
  if (key !== undefined) sent.set("idempotency-key", quoteKey(key));
  // Time only shrinks on its way in, and retries happen here alone.
  sent.set("hapax-deadline", String(timeMs));
  sent.set("hapax-retry", "never");
  const init: RequestInit = { method, headers: sent, redirect: "manual", signal: AbortSignal.timeout(timeMs) };
  if (body.length > 0) init.body = body;
  let begun: number | undefined;
  try {
    const response = await fetch(url, init);
    begun = response.status;
    const received = {
      status: response.status,
      headers: response.headers,
      body: new Uint8Array(await response.arrayBuffer()),
    };
    return { reading: read(received, key), received };
  } catch (cause) {
    return { reading: unanswered(begun === undefined && wasNotSent(cause) ? "not-sent" : "unanswered"), begun, cause };
  }
}

function wasNotSent(error: unknown): boolean {
  const cause: unknown = error instanceof Error ? error.cause : undefined;
  const causes: readonly unknown[] = cause instanceof AggregateError ? cause.errors : [cause];
  return causes.every((one) => NOT_SENT.has(String((one as { code?: unknown } | undefined)?.code)));
}
