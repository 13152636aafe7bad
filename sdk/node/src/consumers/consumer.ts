import { ATTEMPTS_MAX, type Delivery } from "../delivery.js";
import * as errors from "../errors.js";
import type { Hapax } from "../hapax.js";
import { isName, KEY_LENGTH_MAX } from "../operation.js";

/** A message as a broker delivers it. */
export interface Message {
  /** What the broker calls it, where its sender gave it no id of its own. */
  readonly brokerId?: string | undefined;
  readonly content: Buffer;
  /** By names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly key?: string | undefined;
  /** Where it comes from: a topic, a queue. */
  readonly source: string;
}

/** What a consumer does with a message, in a transaction. What it returns is not looked at. */
export type Handler<Tx> = (tx: Tx, message: Message) => unknown;

/** The handler failed for good: the message is not tried again. */
export class FailedForGood extends Error {
  override readonly name = "FailedForGood";
}

/** The message has no id that could be remembered. */
export class NoMessageIdError extends Error {
  override readonly name = "NoMessageIdError";
}

export interface ConsumerOptions {
  /** The last of so many attempts makes a dead letter: 10 if it is not said. */
  readonly attemptsMax?: number;
  /** Which message it is, where headers do not tell. */
  readonly messageId?: (message: Message) => string | undefined;
  /** Longer than the broker can deliver again: 7 days if it is not said. */
  readonly retentionMs?: number;
  readonly tenant?: string;
  /** The pause after the first failed attempt, which doubles with each: 1 s if it is not said. */
  readonly pauseMs?: number;
  /** The longest pause: a minute if it is not said. */
  readonly pauseMsMax?: number;
  /** Hears of every attempt that failed; `process.emitWarning` if it is not said. */
  readonly onError?: (error: unknown, message: Message) => void;
}

/** What the broker is to hear, and whether the handler was called. */
export type Outcome =
  | { readonly word: "done"; readonly acted: boolean }
  | { readonly word: "again"; readonly acted: boolean; readonly pauseMs: number };

/** Where senders say which message it is: CloudEvents, JetStream, AMQP. */
const ID_HEADERS = ["ce-id", "ce_id", "cloudevents:id", "cloudevents_id", "nats-msg-id", "message_id"];
const PAUSE_MS = 1000;
const PAUSE_MS_MAX = 60_000;
const REASON_LENGTH_MAX = 1000;

/** Acts on each message once, in the transaction of what the message changes. */
export class Consumer<Tx> {
  readonly #hapax: Hapax<Tx>;
  readonly #name: string;
  readonly #handler: Handler<Tx>;
  readonly #options: ConsumerOptions;

  constructor(hapax: Hapax<Tx>, name: string, handler: Handler<Tx>, options: ConsumerOptions = {}) {
    this.#hapax = hapax;
    this.#name = name;
    this.#handler = handler;
    this.#options = options;
  }

  /** Acts on a delivery, unless that was done before. A message without a usable id is an error. */
  async deliver(message: Message): Promise<Outcome> {
    const delivery = this.#delivery(message);
    let acted = false;
    try {
      return await this.#hapax.transaction<Outcome>(async (tx) => {
        if (!(await this.#hapax.firstDelivery(tx, delivery)))
          return { how: "rollback", value: { word: "done", acted } };
        acted = true;
        await this.#handler(tx, message);
        return { how: "commit", value: { word: "done", acted } };
      });
    } catch (error) {
      return await this.#failed(delivery, message, error, acted);
    }
  }

  /** For adapters: as `deliver`, and what is raised is told and left to come again. */
  async receive(message: Message): Promise<Outcome> {
    try {
      return await this.deliver(message);
    } catch (error) {
      this.#tell(error, message);
      return { word: "again", acted: false, pauseMs: this.#pauseMs(1) };
    }
  }

  async #failed(delivery: Delivery, message: Message, error: unknown, acted: boolean): Promise<Outcome> {
    const isOtherContent = !acted && error instanceof errors.MismatchError;
    if (!acted && !isOtherContent && !isPassing(error)) throw error;
    this.#tell(error, message);
    if (isPassing(error)) return { word: "again", acted, pauseMs: this.#pauseMs(1) };
    try {
      const reason = (error instanceof Error ? error.message : String(error)).slice(0, REASON_LENGTH_MAX);
      const { key, source, headers } = message;
      const attemptsMax = this.#options.attemptsMax ?? ATTEMPTS_MAX;
      const forGood = error instanceof FailedForGood;
      const { attempts, isOver } = await this.#hapax.failDelivery(delivery, {
        reason,
        attemptsMax,
        forGood,
        key,
        source,
        headers,
      });
      return isOver ? { word: "done", acted } : { word: "again", acted, pauseMs: this.#pauseMs(attempts) };
    } catch (error) {
      if (!isPassing(error)) throw error;
      this.#tell(error, message);
      return { word: "again", acted, pauseMs: this.#pauseMs(1) };
    }
  }

  #delivery(message: Message): Delivery {
    const { messageId, tenant, retentionMs } = this.#options;
    const told = ID_HEADERS.map((name) => message.headers[name]).find((id) => id !== undefined);
    const id = messageId === undefined ? (told ?? message.brokerId) : messageId(message);
    if (id === undefined || id.length > KEY_LENGTH_MAX || !isName(id)) {
      const what =
        id === undefined ? "no id" : `an id that cannot be used, ${JSON.stringify(id.slice(0, KEY_LENGTH_MAX))}`;
      throw new NoMessageIdError(
        `a message of ${message.source} has ${what}; say with \`messageId\` where its sender wrote one`,
      );
    }
    return { consumer: this.#name, messageId: id, content: message.content, tenant, retentionMs };
  }

  /** Half of it is random, so that not all come back at once. */
  #pauseMs(attempts: number): number {
    const { pauseMs = PAUSE_MS, pauseMsMax = PAUSE_MS_MAX } = this.#options;
    const longest = Math.min(pauseMs * 2 ** (attempts - 1), pauseMsMax);
    return (longest / 2) * (1 + Math.random());
  }

  #tell(error: unknown, message: Message): void {
    if (this.#options.onError !== undefined) this.#options.onError(error, message);
    else process.emitWarning(error instanceof Error ? error : String(error));
  }
}

/** Whether it is nobody's fault, and costs no attempt. */
function isPassing(error: unknown): boolean {
  return (
    error instanceof errors.BusyError ||
    error instanceof errors.ConflictError ||
    error instanceof errors.UnavailableError ||
    error instanceof errors.OutcomeUnknownError
  );
}
