import { AsyncLocalStorage } from "node:async_hooks";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";

import { ending, Refused, whole, type Answer, type AnswerInit, type Ending } from "./answer.js";
import { begun } from "./begun.js";
import type { Database, Isolation, Row, Value } from "./database.js";
import * as errors from "./errors.js";
import { deliveredWith, failedWith, type Delivery, type DeliveryFailure, type FailedDelivery } from "./delivery.js";
import { emittedWith, type Event } from "./event.js";
import { begunWith, WAIT_MS, type Operation } from "./operation.js";
import * as statements from "./statements.js";
import { CommitLost, transact, whyNot, whyWorkFailed, type End } from "./transaction.js";

/** What is done once. It writes with the driver's own transaction. */
export type Work<Tx> = (tx: Tx) => AnswerInit | Promise<AnswerInit>;

/** What work said, and how its transaction is to end. */
type Said = Pick<Answer, "status" | "headers" | "body"> & { readonly end: Ending };

/** The version of the schema that this package is written for. */
const SCHEMA_VERSION = 10;

/** Conflicts with other transactions: so many tries in all, after random pauses that double. */
const TRIES_MAX = 6;
const CONFLICT_PAUSE_MS_MAX = 20;

/** A lost COMMIT: so many questions, after random pauses that double. */
const QUESTIONS_MAX = 5;
const QUESTION_PAUSE_MS_MAX = 100;

/** An operation whose work is being done. */
interface UnderWay {
  readonly database: object;
  readonly name: string;
  isOver: boolean;
  readonly outer: UnderWay | undefined;
}

/** What the code that runs is inside of; what outlives it is not any more. */
const underWay = new AsyncLocalStorage<UnderWay>();

/** One effect per key, in the transactions of one driver. */
export class Hapax<Tx> {
  readonly #database: Database<Tx>;
  #isFitting = false;
  /** Those that are being worked in, and need not be looked at. */
  readonly #known = new WeakSet<object>();

  constructor(database: Database<Tx>) {
    this.#database = database;
  }

  /**
   * Does the work in a transaction of its own, once for the operation, and answers every later call with what the first one said.
   *
   * The work may run more than once before it is committed: each time after everything that it wrote was rolled back.
   */
  async once(operation: Operation, work: Work<Tx>): Promise<Answer> {
    const asked = begunWith(operation);
    const entered = this.#enter(operation);
    try {
      return await this.#pursue(operation, asked, (tx) => underWay.run(entered, () => work(tx)));
    } finally {
      entered.isOver = true;
    }
  }

  /** Refuses what is inside of the work of another call, and would be committed without it. */
  #enter({ tenant, scope, key }: Operation): UnderWay {
    const [database, name, outer] = [this.#database, JSON.stringify([tenant, scope, key]), underWay.getStore()];
    for (let at = outer; at !== undefined; at = at.outer) {
      if (!at.isOver && (at.database === database || at.name === name))
        throw new errors.NestedError(
          "this is inside of the work of another `once`, which may still be rolled back: use `within` with the transaction that the work was given; nothing was done",
        );
    }
    return { database, name, isOver: false, outer };
  }

  async #pursue(operation: Operation, asked: readonly Value[], work: Work<Tx>): Promise<Answer> {
    if (!this.#isFitting) await this.#fits();
    const options = { isolation: operation.isolation, waitMs: operation.waitMs ?? WAIT_MS };
    const attempt = (tx: Tx) => this.#attempt(tx, asked, work);
    let conflicts = 0;
    let questions = 0;
    let lost: unknown;
    for (;;) {
      try {
        return await transact(this.#database, options, attempt);
      } catch (error) {
        if (error instanceof CommitLost) lost = error.cause;
        if (error instanceof errors.ConflictError && ++conflicts < TRIES_MAX) {
          await pause(CONFLICT_PAUSE_MS_MAX, conflicts);
        } else if (lost === undefined || !isSilence(error)) {
          throw error;
        } else if (++questions === QUESTIONS_MAX) {
          const message =
            "the connection was lost during COMMIT, and nobody can be asked whether it happened; ask again with the same key";
          throw new errors.OutcomeUnknownError(message, { cause: lost });
        } else {
          await pause(QUESTION_PAUSE_MS_MAX, questions);
        }
      }
    }
  }

  /**
   * The same in a transaction that the caller has opened and commits. It is not tried again.
   *
   * What the work wrote is taken back if it raises, and the key is free.
   */
  async within(tx: Tx, operation: Operation, work: Work<Tx>): Promise<Answer> {
    const asked = begunWith(operation);
    await this.#fits(tx);
    await this.#ask(tx, "SAVEPOINT hapax_within");
    try {
      const end = await this.#attempt(tx, asked, work);
      if (end.how === "rollback") await this.#ask(tx, "ROLLBACK TO SAVEPOINT hapax_within");
      await this.#ask(tx, "RELEASE SAVEPOINT hapax_within");
      return end.value;
    } catch (error) {
      // If this fails too, the transaction is broken, and nothing of it can be committed.
      await this.#ask(tx, "ROLLBACK TO SAVEPOINT hapax_within").catch(() => undefined);
      throw error;
    }
  }

  /** An event that is published if the transaction commits; its id. */
  async emit(tx: Tx, event: Event): Promise<string> {
    const id = event.id ?? randomUUID();
    const values = emittedWith(event, id);
    await this.#fits(tx);
    await this.#checkTransaction(tx);
    await this.#ask(tx, statements.EMIT, values);
    return id;
  }

  /** Whether a message is acted on for the first time. Call it in the transaction of what the message changes. */
  async firstDelivery(tx: Tx, delivery: Delivery): Promise<boolean> {
    const values = deliveredWith(delivery);
    await this.#fits(tx);
    await this.#checkTransaction(tx);
    return (await this.#ask(tx, statements.FIRST_DELIVERY, values))[0]?.["first"] === "true";
  }

  /** Counts an attempt to act on a message that failed, after its transaction was rolled back. */
  async failDelivery(delivery: Delivery, failure: DeliveryFailure): Promise<FailedDelivery> {
    const values = failedWith(delivery, failure);
    await this.#fits();
    const [row] = await this.#ask(undefined, statements.FAIL_DELIVERY, values);
    return { attempts: Number(row?.["attempts"]), isOver: row?.["is_over"] === "true" };
  }

  /**
   * Runs a body in a transaction that it says how to end.
   *
   * For those who build on this class: it is tried once, and a lost COMMIT is an error.
   */
  async transaction<T>(
    body: (tx: Tx) => Promise<End<T>>,
    options: { isolation?: Isolation | undefined; waitMs?: number | undefined } = {},
  ): Promise<T> {
    const limits = { isolation: options.isolation, waitMs: options.waitMs ?? WAIT_MS };
    try {
      return await transact(this.#database, limits, async (tx) => {
        const isNew = this.#note(tx);
        try {
          return await body(tx);
        } finally {
          if (isNew) this.#known.delete(tx as object);
        }
      });
    } catch (error) {
      if (!(error instanceof CommitLost)) throw whyWorkFailed(this.#database, error);
      throw new errors.OutcomeUnknownError(
        "the connection was lost during COMMIT, and nobody said whether it happened",
        { cause: error.cause },
      );
    }
  }

  /** Looks whether the schema `hapax` is there and fits this package. Every first call does so by itself. */
  async checkSchema(): Promise<void> {
    await this.#checkSchema(undefined);
  }

  async #attempt(tx: Tx, asked: readonly Value[], work: Work<Tx>): Promise<End<Answer>> {
    const isNew = this.#note(tx);
    try {
      const [row = {}] = await this.#ask(tx, statements.BEGIN, asked);
      const claimed = begun(row);
      if (claimed.decision === "replay") return { how: "rollback", value: claimed.answer };
      const { status, headers, body, end } = await this.#worked(tx, work);
      if (end === "rollback") return { how: "rollback", value: { status, headers, body, replayed: false } };
      const ended = [claimed.operation, claimed.fence, String(status), JSON.stringify(headers), body];
      await this.#ask(tx, end === "finish" ? statements.FINISH : statements.FAIL, ended);
      return { how: "commit", value: { status, headers, body, replayed: false, expiresAt: claimed.expiresAt } };
    } finally {
      if (isNew) this.#known.delete(tx as object);
    }
  }

  /** Does the work after a savepoint. If it failed for good, its writes are gone. */
  async #worked(tx: Tx, work: Work<Tx>): Promise<Said> {
    if (this.#database.savepoint !== undefined) return await this.#workedInScope(tx, work, this.#database.savepoint);
    await this.#ask(tx, "SAVEPOINT hapax_work");
    const said = await this.#said(tx, work);
    if (said.end === "fail") await this.#ask(tx, "ROLLBACK TO SAVEPOINT hapax_work");
    return said;
  }

  /** The same where the driver has savepoints of its own, which go back if their work rejects. */
  async #workedInScope(tx: Tx, work: Work<Tx>, savepoint: NonNullable<Database<Tx>["savepoint"]>): Promise<Said> {
    let said: Said | undefined;
    try {
      await savepoint(tx, async (inner) => {
        // A session for this time alone.
        this.#note(inner);
        said = await this.#said(inner, work);
        if (said.end === "fail") throw new Error("back to the savepoint");
      });
    } catch (error) {
      if (said?.end !== "fail") throw error;
    }
    if (said === undefined) throw new Error("the driver set a savepoint without doing the work");
    return said;
  }

  async #said(tx: Tx, work: Work<Tx>): Promise<Said> {
    try {
      const said = whole(await work(tx), 200);
      return { ...said, end: ending(said.status) };
    } catch (error) {
      if (!(error instanceof Refused)) throw whyWorkFailed(this.#database, error);
      const said = whole(error.answer, 400);
      if (said.status < 400)
        throw new errors.InvalidError(`a refusal has a status from 400 to 599, not ${said.status}`);
      return { ...said, end: "fail" };
    }
  }

  #ask(tx: Tx | undefined, text: string, values: readonly Value[] = []): Promise<readonly Row[]> {
    return this.#database.query(tx, text, values).catch((error: unknown) => {
      throw whyNot(this.#database, error);
    });
  }

  /** Notes that a transaction is being worked in; whether that is new. */
  #note(tx: Tx): boolean {
    const isNew = !this.#known.has(tx as object);
    if (isNew) this.#known.add(tx as object);
    return isNew;
  }

  /**
   * Outside of a transaction there are no savepoints, which is an error of its own.
   *
   * Nothing that a SELECT can look at tells: `now()` differs from `statement_timestamp()` in autocommit too, for a statement with parameters.
   */
  async #checkTransaction(tx: Tx): Promise<void> {
    if (!this.#known.has(tx as object)) await this.#ask(tx, "SAVEPOINT hapax_check; RELEASE SAVEPOINT hapax_check");
  }

  /** Looks at the schema until it was found to fit. */
  async #fits(tx?: Tx): Promise<void> {
    if (this.#isFitting) return;
    await this.#checkSchema(tx);
    this.#isFitting = true;
  }

  async #checkSchema(tx: Tx | undefined): Promise<void> {
    const [row] = await this.#ask(tx, statements.SCHEMA_VERSION);
    const [version, worksWith] = [Number(row?.["version"]), Number(row?.["works_with"])];
    if (version >= SCHEMA_VERSION && worksWith <= SCHEMA_VERSION) return;
    const what =
      version < SCHEMA_VERSION
        ? "older than this package needs; run `hapax migrate`"
        : "newer than this package; update hapax-once";
    throw new errors.SchemaVersionError(
      `the schema hapax has version ${version}, which is ${what} (it is written for ${SCHEMA_VERSION})`,
    );
  }
}

/** Whether nobody said what became of a COMMIT that was lost. */
function isSilence(error: unknown): boolean {
  return (
    error instanceof CommitLost || error instanceof errors.UnavailableError || error instanceof errors.ConflictError
  );
}

async function pause(firstMsMax: number, nth: number): Promise<void> {
  await sleep(Math.random() * firstMsMax * 2 ** (nth - 1));
}
