import type { DataSource, EntityManager } from "typeorm";

import type { Database } from "../database.js";
import { Hapax } from "../hapax.js";

/** Hapax in transactions of TypeORM on PostgreSQL. */
export function hapax(source: DataSource): Hapax<EntityManager> {
  return new Hapax(database(source));
}

function database(source: DataSource): Database<EntityManager> {
  let opening: Promise<unknown> | undefined;
  // A source that nobody has initialized yet is, by the first call.
  const open = () => (opening ??= source.initialize().finally(() => (opening = undefined)));
  return {
    async transaction(work, { isolation }) {
      if (!source.isInitialized) await open();
      return await (isolation === undefined ? source.transaction(work) : source.transaction(LEVELS[isolation], work));
    },
    async query(tx, text, values) {
      if (!source.isInitialized) await open();
      return await (tx ?? source.manager).query(text, values as unknown[]);
    },
  };
}

const LEVELS = {
  "read committed": "READ COMMITTED",
  "repeatable read": "REPEATABLE READ",
  serializable: "SERIALIZABLE",
} as const;
