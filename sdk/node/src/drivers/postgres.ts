import { setTimeout as sleep } from "node:timers/promises";

import type { Sql, TransactionSql } from "postgres";

import type { Database, Row, TransactionOptions } from "../database.js";
import { Hapax } from "../hapax.js";
import { statementPooling } from "../server-error.js";

/** Hapax in transactions of postgres.js. */
export function hapax<Types extends Record<string, unknown>>(sql: Sql<Types>): Hapax<TransactionSql<Types>> {
  return new Hapax(database(sql));
}

function database<Types extends Record<string, unknown>>(sql: Sql<Types>): Database<TransactionSql<Types>> {
  const states = new WeakMap<TransactionSql<Types>, TransactionState>();
  /** Work with a session of a transaction that is known to be over or not. */
  const tracked =
    <T>(state: TransactionState, work: (tx: TransactionSql<Types>) => Promise<T>) =>
    (tx: TransactionSql<Types>) => {
      states.set(tx, state);
      return work(tx).catch((error: unknown) => unlessOver(state, error));
    };
  return {
    async transaction<T>(work: (tx: TransactionSql<Types>) => Promise<T>, { isolation }: TransactionOptions) {
      const state: TransactionState = { hasBegun: false, isOver: false };
      const begun = tracked(state, (tx) => {
        state.hasBegun = true;
        return work(tx);
      });
      try {
        return (await sql.begin(isolation === undefined ? "" : `isolation level ${isolation}`, begun)) as T;
      } catch (error) {
        throw state.hasBegun || !(await hangsUpAtBegin(sql)) ? error : statementPooling({ cause: error });
      } finally {
        state.isOver = true;
      }
    },
    query(tx, text, values) {
      // Prepared once for each connection, unless the user turned that off for a pooler.
      return (tx ?? sql).unsafe<Row[]>(text, values as never, { prepare: sql.options.prepare });
    },
    // A statement that failed, even one whose error was caught, ends the scope of postgres.js that it was in.
    savepoint: (tx, work) =>
      tx.savepoint(tracked(states.get(tx) ?? { hasBegun: true, isOver: false }, work)) as Promise<void>,
  };
}

interface TransactionState {
  hasBegun: boolean;
  isOver: boolean;
}

/** How long the driver may take to notice that a connection is gone. */
const NOTICE_MS = 50;

/**
 * The driver rejects a transaction whose connection is gone, and would then send ROLLBACK there because the work rejects too, and end the
 * process by that. So the work of a transaction that is over says nothing.
 */
async function unlessOver(state: TransactionState, error: unknown): Promise<never> {
  if (mayBeGone(error)) await sleep(NOTICE_MS);
  if (state.isOver) return await new Promise<never>(() => undefined);
  throw error;
}

/** What the driver rejects with on a connection that is gone. */
const GONE = new Set([
  "CONNECTION_CLOSED",
  "CONNECTION_DESTROYED",
  "CONNECTION_ENDED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
]);

function mayBeGone(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause)
    if (GONE.has(String((at as NodeJS.ErrnoException).code))) return true;
  return false;
}

/**
 * Whether plain statements are answered, and transactions are not: PgBouncer in statement mode hangs up when one begins, and what it says
 * before that is lost in the driver.
 */
async function hangsUpAtBegin<Types extends Record<string, unknown>>(sql: Sql<Types>): Promise<boolean> {
  const isAnswered = (asked: Promise<unknown>) =>
    asked.then(
      () => true,
      () => false,
    );
  const ask = async () => await sql`SELECT 1`.simple();
  return (
    (await isAnswered(ask())) && !(await isAnswered(sql.begin(async () => undefined))) && (await isAnswered(ask()))
  );
}
