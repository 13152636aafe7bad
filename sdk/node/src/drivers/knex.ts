import type { Knex } from "knex";

import type { Database } from "../database.js";
import { Hapax } from "../hapax.js";

/** Hapax in transactions of Knex on PostgreSQL. */
export function hapax(knex: Knex): Hapax<Knex.Transaction> {
  return new Hapax(database(knex));
}

function database(knex: Knex): Database<Knex.Transaction> {
  return {
    transaction: (work, { isolation }) =>
      knex.transaction(work, isolation === undefined ? {} : { isolationLevel: isolation }),
    async query(tx, text, values) {
      // Our parameters are in order and used once each, which is what Knex calls `?`.
      const statement = text.replace(/\$\d+/g, "?");
      return (await (tx ?? knex).raw(statement, values as Knex.RawBinding[])).rows;
    },
  };
}
