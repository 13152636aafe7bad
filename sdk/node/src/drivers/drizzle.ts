import { sql, type SQL } from "drizzle-orm";

import type { Database, Isolation, Row, Value } from "../database.js";
import { Hapax } from "../hapax.js";

/** A database of `drizzle-orm/node-postgres`, over a pool. */
export interface Drizzle<Tx extends Session> extends Session {
  transaction<T>(work: (tx: Tx) => Promise<T>, config?: { isolationLevel?: Isolation }): Promise<T>;
}

interface Session {
  execute(query: SQL): PromiseLike<unknown>;
}

/** Hapax in transactions of Drizzle. */
export function hapax<Tx extends Session>(db: Drizzle<Tx>): Hapax<Tx> {
  surviveLostConnections(db);
  return new Hapax(database(db));
}

function database<Tx extends Session>(db: Drizzle<Tx>): Database<Tx> {
  return {
    transaction: (work, { isolation }) =>
      db.transaction(work, isolation === undefined ? undefined : { isolationLevel: isolation }),
    async query(tx, text, values) {
      return ((await (tx ?? db).execute(statement(text, values))) as { rows: Row[] }).rows;
    },
  };
}

/** What is between the parameters of our statements, which are few. */
const texts = new Map<string, readonly SQL[]>();

/** Our parameters are in order and used once each. */
function statement(text: string, values: readonly Value[]): SQL {
  let parts = texts.get(text);
  if (parts === undefined) texts.set(text, (parts = text.split(/\$\d+/).map((part) => sql.raw(part))));
  return sql.join(parts.flatMap((part, at) => (at === 0 ? [part] : [sql.param(values[at - 1]), part])));
}

/** Drizzle takes connections from the pool without a listener, and one that breaks would end the process. */
function surviveLostConnections(db: object): void {
  const { $client: pool } = db as { $client?: { on?: unknown; totalCount?: unknown } };
  if (typeof pool?.on !== "function" || typeof pool.totalCount !== "number") {
    throw new TypeError("this is no database of drizzle-orm/node-postgres over a pool");
  }
  pool.on("connect", (client: { on(event: "error", listener: () => void): void }) =>
    client.on("error", () => undefined),
  );
}
