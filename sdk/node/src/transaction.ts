import type { Database, TransactionOptions } from "./database.js";
import { HapaxError } from "./errors.js";
import { explained, isConflict, isUnavailable, serverError, unavailable, type ServerError } from "./server-error.js";

/** How the body of a transaction wants it to end, and what is said then. */
export interface End<T> {
  readonly how: "commit" | "rollback";
  readonly value: T;
}

/** Nobody said whether a COMMIT happened. */
export class CommitLost extends Error {}

/** Runs a body in a transaction, and tells what is known afterwards: its value, or an error. */
export async function transact<Tx, T>(
  database: Database<Tx>,
  options: TransactionOptions,
  body: (tx: Tx) => Promise<End<T>>,
): Promise<T> {
  let end: End<T> | undefined;
  let raised: { readonly error: unknown } | undefined;
  try {
    await database.transaction(async (tx) => {
      try {
        end = await body(tx);
      } catch (error) {
        raised = { error };
        throw error;
      }
      if (end.how === "rollback") throw new Error("rolled back, as it was asked for");
    }, options);
  } catch (error) {
    // What the body raised counts, not what a driver made of it while it rolled back.
    if (raised !== undefined) throw raised.error;
    if (end === undefined) throw whyNot(database, error);
    if (end.how === "commit") throw whyNotCommitted(database, error);
  }
  if (end === undefined) throw new Error("the driver resolved a transaction without running it");
  return end.value;
}

/** What it means that one of our own statements failed. */
export function whyNot<Tx>(database: Database<Tx>, error: unknown): unknown {
  if (error instanceof HapaxError) return error;
  const server = read(database, error);
  if (server !== undefined) return explained(server, error);
  return isMistake(error) ? error : unavailable(error);
}

/** What it means that the work failed: mostly the work's own business. */
export function whyWorkFailed<Tx>(database: Database<Tx>, error: unknown): unknown {
  const server = read(database, error);
  return server !== undefined && (isConflict(server) || isUnavailable(server)) ? explained(server, error) : error;
}

function whyNotCommitted<Tx>(database: Database<Tx>, error: unknown): unknown {
  const server = read(database, error);
  if (server === undefined || isUnavailable(server))
    return new CommitLost("nobody said whether it was committed", { cause: error });
  return isConflict(server) ? explained(server, error) : error;
}

function read<Tx>(database: Database<Tx>, error: unknown): ServerError | undefined {
  return database.serverError === undefined ? serverError(error) : database.serverError(error);
}

/** Whether somebody wrote something wrong, which no server can answer for. */
function isMistake(error: unknown): boolean {
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
}
