// Every driver, opened as a service would, with what the agent needs of it besides the SDK.

const CONNECTIONS_MAX = 10;

async function openPg(url) {
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: url, max: CONNECTIONS_MAX });
  pool.on("error", (error) => console.error(`an idle connection was lost: ${error.message}`));
  return pool;
}

// An agent uses one of them, and loads no other. Each has the SDK's object, a statement with parameters and one that returns rows, a
// transaction of the user's own, and a session outside of any.
export const drivers = {
  async pg(url) {
    const { hapax } = await import("hapax-once/pg");
    const pool = await openPg(url);
    return {
      hapax: hapax(pool),
      another: () => hapax(pool),
      run: (tx, text, values = []) => tx.query(text, values),
      rows: async (tx, text, values) => (await tx.query(text, values)).rows,
      async transaction(work) {
        const client = await pool.connect();
        try {
          await client.query("BEGIN");
          const value = await work(client);
          await client.query("COMMIT");
          return value;
        } catch (error) {
          await client.query("ROLLBACK");
          throw error;
        } finally {
          client.release();
        }
      },
      async autocommit(work) {
        const client = await pool.connect();
        try {
          return await work(client);
        } finally {
          client.release();
        }
      },
      close: () => pool.end(),
    };
  },

  async postgres(url, prepare = false) {
    const { default: postgres } = await import("postgres");
    const { hapax } = await import("hapax-once/postgres");
    // Not prepared, as behind a pooler: the scenarios' proxy has to see the word COMMIT on its way.
    const sql = postgres(url, { max: CONNECTIONS_MAX, onnotice: () => {}, prepare });
    return {
      hapax: hapax(sql),
      another: () => hapax(sql),
      run: (tx, text, values = []) => tx.unsafe(text, values),
      rows: (tx, text, values) => tx.unsafe(text, values, { prepare }),
      transaction: (work) => sql.begin(work),
      // A bare SAVEPOINT would not survive a statement that fails after it.
      savepoint: (tx, work) => tx.savepoint(work),
      async autocommit(work) {
        const reserved = await sql.reserve();
        try {
          return await work(reserved);
        } finally {
          reserved.release();
        }
      },
      // Without a limit it waits for connections that were lost.
      close: () => sql.end({ timeout: 1 }),
    };
  },

  async prisma(url) {
    const { PrismaPg } = await import("@prisma/adapter-pg");
    const { PrismaClient } = await import("../build/prisma/client.js");
    const { hapax } = await import("hapax-once/prisma");
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: CONNECTIONS_MAX }) });
    return {
      hapax: hapax(prisma),
      another: () => hapax(prisma),
      run: (tx, text, values = []) => tx.$executeRawUnsafe(text, ...values),
      rows: (tx, text, values) => tx.$queryRawUnsafe(text, ...values),
      transaction: (work) => prisma.$transaction(work, { timeout: 30_000 }),
      autocommit: (work) => work(prisma),
      close: () => prisma.$disconnect(),
    };
  },

  async drizzle(url) {
    const { sql } = await import("drizzle-orm");
    const { drizzle } = await import("drizzle-orm/node-postgres");
    const { hapax } = await import("hapax-once/drizzle");
    const pool = await openPg(url);
    const db = drizzle({ client: pool });
    const statement = (text, values) => {
      const parts = text.split(/\$\d+/).map((part) => sql.raw(part));
      return sql.join(parts.flatMap((part, at) => (at === 0 ? [part] : [sql.param(values[at - 1]), part])));
    };
    return {
      hapax: hapax(db),
      another: () => hapax(db),
      run: (tx, text, values = []) => tx.execute(statement(text, values)),
      rows: async (tx, text, values) => (await tx.execute(statement(text, values))).rows,
      transaction: (work) => db.transaction(work),
      autocommit: (work) => work(db),
      close: () => pool.end(),
    };
  },

  async knex(url) {
    const { default: Knex } = await import("knex");
    const { hapax } = await import("hapax-once/knex");
    const [warn, error, debug, deprecate] = Array(4).fill((message) => console.error(message));
    const log = { warn, error, debug, deprecate };
    const knex = Knex({ client: "pg", connection: url, pool: { min: 0, max: CONNECTIONS_MAX }, log });
    return {
      hapax: hapax(knex),
      another: () => hapax(knex),
      run: (tx, text, values = []) => tx.raw(text.replace(/\$\d+/g, "?"), values),
      rows: async (tx, text, values) => (await tx.raw(text.replace(/\$\d+/g, "?"), values)).rows,
      transaction: (work) => knex.transaction(work),
      autocommit: (work) => work(knex),
      close: () => knex.destroy(),
    };
  },

  async typeorm(url) {
    const { DataSource } = await import("typeorm");
    const { hapax } = await import("hapax-once/typeorm");
    const source = new DataSource({ type: "postgres", url, poolSize: CONNECTIONS_MAX });
    return {
      hapax: hapax(source),
      another: () => hapax(source),
      run: (tx, text, values = []) => tx.query(text, values),
      rows: (tx, text, values) => tx.query(text, values),
      async transaction(work) {
        if (!source.isInitialized) await source.initialize();
        return await source.transaction(work);
      },
      autocommit: (work) => work(source.manager),
      close: () => source.isInitialized && source.destroy(),
    };
  },
};
