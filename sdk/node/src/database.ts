import type { ServerError } from "./server-error.js";

/** How transactions are kept apart; the database's own default if it is not said. */
export type Isolation = "read committed" | "repeatable read" | "serializable";

/** Our statements have parameters of text and bytes alone, which every driver sends alike. */
export type Value = string | Uint8Array | null;

/** Our statements return texts, and bytes for a body. */
export type Row = Readonly<Record<string, unknown>>;

/**
 * What a driver does for Hapax. `Tx` is what the driver's own users write with in a transaction.
 *
 * The core decides nothing about connections: it is told what failed, and when.
 */
export interface Database<Tx> {
  /** Runs the work in a transaction: commits if it resolves, rolls back if it rejects. */
  transaction<T>(work: (tx: Tx) => Promise<T>, options: TransactionOptions): Promise<T>;
  /** Runs a statement, on any connection if no transaction is given. */
  query(tx: Tx | undefined, text: string, values: readonly Value[]): Promise<readonly Row[]>;
  /** Runs the work after a savepoint, and goes back to it if that rejects; where the driver does not want to be told by statements. */
  savepoint?(tx: Tx, work: (tx: Tx) => Promise<void>): Promise<void>;
  /** The error of the database in an error of this driver, where that is not pg's own. */
  serverError?(error: unknown): ServerError | undefined;
}

export interface TransactionOptions {
  readonly isolation?: Isolation | undefined;
  /** How long one of our statements may wait in it for other transactions. */
  readonly waitMs: number;
}
