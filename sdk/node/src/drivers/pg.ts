import type { Pool, PoolClient } from "pg";

import type { Database } from "../database.js";
import { Hapax } from "../hapax.js";

/** Hapax in transactions of node-postgres. */
export function hapax(pool: Pool): Hapax<PoolClient> {
  return new Hapax(database(pool));
}

function database(pool: Pool): Database<PoolClient> {
  return {
    async transaction(work, { isolation }) {
      const client = await pool.connect();
      // A connection that breaks fails the statement on it; without a listener it would end the process.
      client.on("error", ignore);
      let isBroken = false;
      try {
        await client.query(isolation === undefined ? "BEGIN" : `BEGIN ISOLATION LEVEL ${isolation}`);
        const value = await work(client);
        await client.query("COMMIT");
        return value;
      } catch (error) {
        await client.query("ROLLBACK").catch(() => (isBroken = true));
        throw error;
      } finally {
        client.off("error", ignore);
        client.release(isBroken);
      }
    },
    query: (tx, text, values) => (tx ?? pool).query(text, values as unknown[]).then(({ rows }) => rows),
  };
}

function ignore(): void {}
