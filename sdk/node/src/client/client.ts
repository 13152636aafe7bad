import { randomUUID } from "node:crypto";

import { bytes } from "../answer.js";
import { isName, KEY_LENGTH_MAX } from "../operation.js";
import * as errors from "./errors.js";
import type { Conclusion } from "./history.js";
import { Journal, type Entry, type StoredAnswer, type StoredRequest } from "./journal.js";
import { pursue, type Pursued, type Pursuit } from "./pursuit.js";
import { isSecretHeader } from "./secret.js";

export interface ClientOptions {
  /** Where operations with a name are kept, so that the next process finishes what this one began. */
  readonly journal?: string;
  /** Sent with every request, and never written to disk. */
  readonly headers?: Readonly<Record<string, string>>;
  /** One limit over all attempts: a minute if it is not said. */
  readonly deadlineMs?: number;
  /** How long one attempt may take: 10 s if it is not said. */
  readonly attemptMs?: number;
  /** How often a request without a name is tried: 5 times if it is not said. One with a name is tried until its deadline. */
  readonly attemptsMax?: number;
  /** What the first pause is drawn from, which doubles: 100 ms if it is not said. */
  readonly pauseMs?: number;
  /** The longest pause of our own choice: 20 s if it is not said. */
  readonly pauseMsMax?: number;
}

/** A request that is to have its effect once. */
export interface Call {
  /** What should happen once, `charge-order-42`: sent again under its name, it has the same key. Needs a journal. */
  readonly name?: string;
  /** `POST` if it is not said. */
  readonly method?: string;
  readonly url: string | URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** A value to send as JSON, instead of a body. */
  readonly json?: unknown;
  /** The key; a random one if it is not said. */
  readonly key?: string;
  readonly deadlineMs?: number;
}

/** What an operation was answered with, whole. */
export interface ClientAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Buffer;
  readonly key: string | undefined;
  /** How many attempts this process made. */
  readonly attempts: number;
  /** Whether the server says that it is the kept answer to an earlier attempt. */
  readonly replayed: boolean;
  /** Whether it comes from the journal: nothing was sent this time. */
  readonly recorded: boolean;
  /** Why it could not be written to the journal, where the operation is still pending: a resume asks again with the same key. */
  readonly notRecorded?: errors.JournalError;
}

/** What became of an operation that an earlier process began. */
export interface Resumed {
  readonly name: string;
  /** Absent if it could not be sent, and is still pending. */
  readonly conclusion: Conclusion | undefined;
  readonly answer?: ClientAnswer | undefined;
  readonly error?: unknown;
}

const DEADLINE_MS = 60_000;
const ATTEMPT_MS = 10_000;
const ATTEMPTS_MAX = 5;
const PAUSE_MS = 100;
const PAUSE_MS_MAX = 20_000;
const BODY_BYTES_MAX = 1 << 20;
const RETENTION_MS = 7 * 24 * 60 * 60 * 1000;
/** Methods that have no second effect by themselves. */
const IDEMPOTENT_METHODS = new Set(["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"]);

/** Sends requests until it is known what came of them: one key for all attempts, and retries only where they are harmless. */
export class Client {
  readonly #options: ClientOptions;
  #journal: Promise<Journal> | undefined;
  /** What is under way by its name: whoever asks again waits for the same. */
  readonly #underWay = new Map<string, { readonly request: StoredRequest; readonly answer: Promise<ClientAnswer> }>();

  constructor(options: ClientOptions = {}) {
    this.#options = options;
  }

  /** Sends a request, and again until it is answered or its time is over. Anything but done is an error that says so. */
  async send(call: Call): Promise<ClientAnswer> {
    const request = this.#request(call);
    if (call.name === undefined) return settled(await pursue(this.#pursuit(call, request)));
    if (!isName(call.name) || call.name.length > KEY_LENGTH_MAX) {
      throw new errors.InvalidCallError(`a name has 1 to ${KEY_LENGTH_MAX} visible ASCII characters`);
    }
    const journal = await this.#opened();
    return await this.#sendNamed(journal, call.name, call, request);
  }

  /** Finishes what earlier processes began: each with the key that it was begun with. */
  async resume(): Promise<readonly Resumed[]> {
    const journal = await this.#opened();
    return await Promise.all(journal.pending().map((entry) => this.#resume(journal, entry)));
  }

  /** Lets a name begin anew with a new key: only for what will never be sent again. */
  async forget(name: string): Promise<void> {
    await (await this.#opened()).forget(name);
  }

  /** Removes what ended longer ago than this from the journal, seven days if it is not said. What is pending or unknown stays. */
  async purge(olderThanMs: number = RETENTION_MS): Promise<void> {
    await (await this.#opened()).purge(olderThanMs);
  }

  /** Gives the journal to the next process. */
  async close(): Promise<void> {
    await (await this.#journal)?.close();
    this.#journal = undefined;
  }

  async #sendNamed(journal: Journal, name: string, call: Call, request: PreparedRequest): Promise<ClientAnswer> {
    const [entry, underWay] = [journal.get(name), this.#underWay.get(name)];
    const known = underWay?.request ?? entry?.request;
    if (known !== undefined && !isSame(known, request.stored)) throw new errors.NameReusedError(name);
    if (underWay !== undefined) return await underWay.answer;
    return await this.#exclusively(name, request.stored, () => this.#begun(journal, name, entry, call, request));
  }

  async #exclusively(name: string, request: StoredRequest, send: () => Promise<ClientAnswer>): Promise<ClientAnswer> {
    const answer = send().finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, { request, answer });
    return await answer;
  }

  async #begun(
    journal: Journal,
    name: string,
    entry: Entry | undefined,
    call: Call,
    request: PreparedRequest,
  ): Promise<ClientAnswer> {
    if (entry?.end?.answer !== undefined) {
      const { conclusion, answer } = entry.end;
      if (conclusion === "done") return fromJournal(entry, answer);
      if (conclusion === "refused") throw new errors.CallRefusedError(fromJournal(entry, answer));
    }
    const key = entry?.key ?? call.key ?? randomUUID();
    const pursuit = { ...this.#pursuit({ ...call, key }, request), attemptsMax: Infinity };
    if (entry === undefined) {
      await journal.begin({ name, key, request: request.stored, begunAt: Date.now(), deadlineMs: pursuit.deadlineMs });
    } else if (entry.end !== undefined) {
      await journal.takeUp(name);
    }
    // What was begun before may have been sent before.
    const isTakenOver = entry !== undefined && entry.end?.conclusion !== "gave up";
    return await noted(journal, name, await pursue({ ...pursuit, isTakenOver }));
  }

  async #resume(journal: Journal, entry: Entry): Promise<Resumed> {
    const { name, request } = entry;
    try {
      const finish = async () => noted(journal, name, await pursue(this.#resumption(entry)));
      const answer = await (this.#underWay.get(name)?.answer ?? this.#exclusively(name, request, finish));
      return { name, conclusion: "done", answer };
    } catch (error) {
      const { conclusion } = error instanceof errors.CallError ? error : {};
      return { name, conclusion, answer: error instanceof errors.CallRefusedError ? error.answer : undefined, error };
    }
  }

  #resumption({ name, key, request, begunAt, deadlineMs }: Entry): Pursuit {
    const own = new Headers(this.#options.headers);
    const missing = request.withheld.filter((header) => !own.has(header));
    if (missing.length > 0) throw new errors.CredentialsMissingError(name, missing);
    const left = begunAt + deadlineMs - Date.now();
    // One whose deadline has passed is asked for once more.
    const attempts =
      left > 0 ? { deadlineMs: left, attemptsMax: Infinity } : { deadlineMs: this.#limits.attemptMs, attemptsMax: 1 };
    const { method, url, headers, body } = request;
    return {
      ...this.#limits,
      method,
      url,
      headers: merged(own, headers),
      body: Buffer.from(body, "base64"),
      key,
      isTakenOver: true,
      ...attempts,
    };
  }

  #request(call: Call): PreparedRequest {
    const url = parsedUrl(call.url);
    const headers = new Headers(call.headers);
    if (headers.has("idempotency-key")) throw new errors.InvalidCallError("give the key as `key`, and not as a header");
    if (call.json !== undefined && !headers.has("content-type")) headers.set("content-type", "application/json");
    const body = bytes(call.json === undefined ? (call.body ?? "") : JSON.stringify(call.json));
    if (body.length > BODY_BYTES_MAX)
      throw new errors.InvalidCallError(`a request may have ${BODY_BYTES_MAX} bytes, and this one has ${body.length}`);
    if (call.key !== undefined && (!isName(call.key) || call.key.length > KEY_LENGTH_MAX)) {
      throw new errors.InvalidCallError(`a key has 1 to ${KEY_LENGTH_MAX} visible ASCII characters`);
    }
    const method = (call.method ?? "POST").toUpperCase();
    const kept = [...headers].filter(([name]) => !isSecretHeader(name));
    const withheld = [...headers.keys()].filter(isSecretHeader);
    const stored = { method, url, headers: Object.fromEntries(kept), withheld, body: body.toString("base64") };
    return { headers: merged(new Headers(this.#options.headers), Object.fromEntries(headers)), body, stored };
  }

  #pursuit(call: Call, { headers, body, stored: { method, url } }: PreparedRequest): Pursuit {
    const key = call.key ?? (IDEMPOTENT_METHODS.has(method) ? undefined : randomUUID());
    const deadlineMs = call.deadlineMs ?? this.#options.deadlineMs ?? DEADLINE_MS;
    return {
      ...this.#limits,
      method,
      url,
      headers,
      body,
      key,
      deadlineMs,
      attemptsMax: this.#options.attemptsMax ?? ATTEMPTS_MAX,
    };
  }

  get #limits() {
    const { attemptMs = ATTEMPT_MS, pauseMs = PAUSE_MS, pauseMsMax = PAUSE_MS_MAX } = this.#options;
    return { attemptMs, pauseMs, pauseMsMax };
  }

  async #opened(): Promise<Journal> {
    const { journal: path } = this.#options;
    if (path === undefined)
      throw new errors.InvalidCallError(
        'an operation with a name needs a journal: new Client({ journal: "calls.journal" })',
      );
    this.#journal ??= Journal.open(path).catch((error: unknown) => {
      this.#journal = undefined;
      throw error;
    });
    return await this.#journal;
  }
}

interface PreparedRequest {
  readonly headers: Headers;
  readonly body: Buffer;
  readonly stored: StoredRequest;
}

/** Writes down what an operation came to, and says it. */
async function noted(journal: Journal, name: string, pursued: Pursued): Promise<ClientAnswer> {
  const { conclusion, attempts, answer } = pursued;
  try {
    await journal.end(name, {
      conclusion,
      at: Date.now(),
      attempts,
      answer: answer === undefined ? undefined : stored(answer),
    });
  } catch (error) {
    if (answer === undefined || !(error instanceof errors.JournalError)) throw error;
    return settled({ ...pursued, answer: { ...answer, notRecorded: error } });
  }
  return settled(pursued);
}

function settled({ conclusion, key, attempts, cause, answer }: Pursued): ClientAnswer {
  if (conclusion === "done" && answer !== undefined) return answer;
  if (conclusion === "refused" && answer !== undefined) throw new errors.CallRefusedError(answer);
  const unfinished = { key, attempts, answer };
  throw conclusion === "gave up"
    ? new errors.CallGaveUpError(unfinished, { cause })
    : new errors.CallUnknownError(unfinished, { cause });
}

/** The call's own headers, and the client's where it has none of that name. */
function merged(usual: Headers, own: Readonly<Record<string, string>>): Headers {
  const headers = new Headers(usual);
  for (const [name, value] of Object.entries(own)) headers.set(name, value);
  return headers;
}

function stored({ status, headers, body }: ClientAnswer): StoredAnswer {
  return { status, headers: [...headers], body: body.toString("base64") };
}

function fromJournal(entry: Entry, { status, headers, body }: StoredAnswer): ClientAnswer {
  const replayed = false;
  const pairs = headers.map(([name, value]): [string, string] => [name, value]);
  return {
    status,
    headers: new Headers(pairs),
    body: Buffer.from(body, "base64"),
    key: entry.key,
    attempts: 0,
    replayed,
    recorded: true,
  };
}

/** Whether a name stands for the same request: credentials may change. */
function isSame(one: StoredRequest, other: StoredRequest): boolean {
  const parts = ({ method, url, headers, body }: StoredRequest) =>
    JSON.stringify([method, url, Object.entries(headers).sort(), body]);
  return parts(one) === parts(other);
}

function parsedUrl(url: string | URL): string {
  const parsed = URL.canParse(String(url)) ? new URL(url) : undefined;
  if (parsed?.protocol !== "http:" && parsed?.protocol !== "https:")
    throw new errors.InvalidCallError(`${String(url)} is no address of HTTP`);
  return parsed.href;
}
