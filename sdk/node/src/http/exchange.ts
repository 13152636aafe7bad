import { bytes, type Answer, type AnswerInit } from "../answer.js";
import { canonicalJson } from "../canonical-json.js";
import * as errors from "../errors.js";
import type { Hapax } from "../hapax.js";
import { isName, type Operation } from "../operation.js";
import { readKey } from "./key.js";
import { problem, type Reply } from "./problem.js";

/** How the requests of a service are protected. */
export interface ProtectionOptions<Request> extends RouteOptions {
  /** Who the caller has proved to be, never what it says of itself; nothing if that is not known. `() => "shop"` is one tenant for all. */
  readonly tenant: (request: Request) => Tenant | Promise<Tenant>;
}

export type Tenant = string | undefined;

/** What a route may say otherwise. */
export interface RouteOptions extends Pick<Operation, "retentionMs" | "tombstoneMs" | "waitMs" | "isolation"> {
  /** Members of JSON bodies that do not matter, as JSON pointers: `/sent_at`. */
  readonly ignore?: readonly string[] | undefined;
  /** Another scope than the method, a space and the path. */
  readonly scope?: string | undefined;
}

/** A request, as far as it is looked at. */
export interface Arrival {
  readonly method: string;
  /** Path and query, as they were sent. */
  readonly target: string;
  /** The lines of `Idempotency-Key`. */
  readonly keyLines: readonly string[];
  readonly contentType: string | undefined;
  readonly body: Uint8Array;
}

/** Methods that promise to change nothing. */
const SAFE_METHODS = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "REPORT", "SEARCH"]);
const SCOPE_LENGTH_MAX = 1024;

/** Headers of one connection, of one answer and of one person. The length is written anew by whoever sends. */
const UNSTORED = new Set(["connection", "keep-alive", "transfer-encoding", "date", "set-cookie", "content-length"]);

/**
 * Answers a request once: with what the handler says, with what it said before, or with a problem document.
 *
 * What the handler raises goes on to the framework, after everything was rolled back.
 */
export async function exchange<Tx>(
  hapax: Hapax<Tx>,
  arrival: Arrival,
  tenant: () => Tenant | Promise<Tenant>,
  options: RouteOptions,
  handle: (tx: Tx) => Promise<Reply>,
): Promise<Reply> {
  const { method, target } = arrival;
  // Not protected, but with a transaction all the same: the handler is the same.
  if (SAFE_METHODS.has(method))
    return await hapax.transaction(async (tx) => ({ how: "commit", value: await handle(tx) }), options);
  const read = readKey(arrival.keyLines);
  if ("refused" in read) return problem(read.refused, read.detail);
  const [path, query] = split(target);
  const scope = options.scope ?? `${method} ${path}`;
  if (scope.length > SCOPE_LENGTH_MAX || !isName(scope)) {
    return problem("scope-unusable", `Method and path may have ${SCOPE_LENGTH_MAX} visible ASCII characters.`);
  }
  const who = await tenant();
  if (who === undefined || who === "") return problem("credential-missing", "It is not known who asks.");
  const { retentionMs, tombstoneMs, waitMs, isolation } = options;
  const request = compared(arrival, options.ignore ?? []);
  const operation = {
    tenant: who,
    scope,
    key: read.key,
    request,
    method,
    path,
    query,
    retentionMs,
    tombstoneMs,
    waitMs,
    isolation,
  };
  return await replied(hapax, operation, handle);
}

async function replied<Tx>(hapax: Hapax<Tx>, operation: Operation, handle: (tx: Tx) => Promise<Reply>): Promise<Reply> {
  let first: Reply | undefined;
  try {
    const answer = await hapax.once(operation, async (tx) => {
      first = undefined;
      first = await handle(tx);
      return stored(first);
    });
    // What is not stored is in the first answer alone.
    const { status, headers, body } = answer.replayed || first === undefined ? answer : first;
    return { status, headers: { ...headers, ...marks(answer) }, body };
  } catch (error) {
    const told = toldOf(error);
    if (told === undefined) throw error;
    return told;
  }
}

/** What a client hears of an error; nothing of one that is not for clients. */
export function toldOf(error: unknown): Reply | undefined {
  if (!(error instanceof errors.HapaxError)) return undefined;
  if (error instanceof errors.BusyError) {
    return problem(
      "key-in-flight",
      "The first request with this key is still being worked on. Ask again later.",
      error,
    );
  }
  if (error instanceof errors.MismatchError) return problem("key-reused", "Use a new key for a new request.", error);
  if (error instanceof errors.NotRetainedError) {
    return problem("response-not-retained", `It was answered with ${error.status}; the body was not kept.`);
  }
  switch (error.kind) {
    case "in_doubt":
      return problem(
        "outcome-in-doubt",
        "An attempt ended without an answer. It is not repeated until somebody has found out whether it happened.",
      );
    case "gone":
      return problem("key-gone", "The key was used, and its answer is no longer kept.");
    case "conflict":
      return problem("transaction-rolled-back", "Nothing of it was kept. Ask again with the same key.", {
        retryAfter: 1,
      });
    case "damaged":
      return problem("stored-response-corrupt", "It was not served, and nothing was run.");
    case "newer":
      return problem("stored-by-newer-version", "Nothing was run. Ask again.", { retryAfter: 5 });
    case "unavailable":
      return problem("store-unavailable", "Nothing was run. Ask again.", { retryAfter: 1 });
    case "outcome_unknown":
      return problem("outcome-not-recorded", "The request may have been carried out. Ask again with the same key.", {
        retryAfter: 1,
      });
    default:
      return undefined;
  }
}

function stored({ status, headers, body }: Reply): AnswerInit {
  return { status, headers: Object.fromEntries(Object.entries(headers).filter(([name]) => !UNSTORED.has(name))), body };
}

export function marks({ replayed, expiresAt }: Pick<Answer, "replayed" | "expiresAt">): Record<string, string> {
  return {
    ...(replayed ? { "idempotent-replayed": "true" } : {}),
    ...(expiresAt === undefined ? {} : { "idempotency-expires": expiresAt.toUTCString() }),
  };
}

function split(target: string): readonly [path: string, query: string] {
  const at = target.indexOf("?");
  return at < 0 ? [target, ""] : [target.slice(0, at), target.slice(at + 1)];
}

/** The bytes that are compared: JSON in its one spelling, anything else as it is. */
function compared({ contentType, body }: Arrival, ignore: readonly string[]): Uint8Array {
  if (!isJson(contentType)) return body;
  let text;
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return body;
  }
  const canonical = canonicalJson(text, ignore);
  return canonical === undefined ? body : bytes(canonical);
}

/** Whether a body is said to be JSON, under a name of its own or as the syntax of another type. */
export function isJson(contentType: string | undefined): boolean {
  const essence = contentType?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  return essence === "application/json" || essence === "text/json" || /^[^/\s]+\/[^/\s]+\+json$/.test(essence);
}
