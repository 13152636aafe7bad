// What a user of each driver writes, as far as the compiler can tell.

import { PrismaPg } from "@prisma/adapter-pg";
import { pgTable, text } from "drizzle-orm/pg-core";
import { drizzle, type NodePgDatabase } from "drizzle-orm/node-postgres";
import Knex from "knex";
import pg from "pg";
import postgres from "postgres";
import { DataSource, type EntityManager } from "typeorm";

import { json, Refused, type Answer, type Hapax, type Operation } from "hapax-once";
import { hapax as onDrizzle } from "hapax-once/drizzle";
import { hapax as onKnex } from "hapax-once/knex";
import { hapax as onPg } from "hapax-once/pg";
import { hapax as onPostgres } from "hapax-once/postgres";
import { hapax as onPrisma } from "hapax-once/prisma";
import { hapax as onTypeorm } from "hapax-once/typeorm";

import { PrismaClient, type Prisma } from "../../build/prisma/client.js";

/** Whether two types are the same. */
type Same<One, Other> = (<T>() => T extends One ? 1 : 2) extends <T>() => T extends Other ? 1 : 2 ? true : false;
const is = <_ extends true>() => undefined;

const operation: Operation = { tenant: "shop", scope: "POST /payments", key: "order-17" };
const url = "postgres://postgres@127.0.0.1/postgres";

async function everywhere(): Promise<void> {
  const answer = await onPg(new pg.Pool()).once(operation, async (tx) => {
    is<Same<typeof tx, pg.PoolClient>>();
    const { rows } = await tx.query<{ id: number }>("INSERT INTO payments DEFAULT VALUES RETURNING id");
    if (rows[0] === undefined) throw new Refused(json(404, { error: "there is no such account" }));
    return json(201, { payment: rows[0].id });
  });
  is<Same<typeof answer, Answer>>();

  const sql = postgres(url);
  await onPostgres(sql).once(operation, async (tx) => {
    is<Same<typeof tx, postgres.TransactionSql>>();
    await tx`INSERT INTO payments DEFAULT VALUES`;
    return { status: 201 };
  });
  await sql.begin((tx) => onPostgres(sql).within(tx, operation, () => ({ status: 204 })));

  const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url }) });
  const hapax = onPrisma(prisma, { timeoutMs: 5000 });
  await hapax.once(operation, async (tx) => {
    await tx.$executeRaw`INSERT INTO payments DEFAULT VALUES`;
    const client: Prisma.TransactionClient = tx;
    return { body: String(client) };
  });
  await prisma.$transaction((tx) => hapax.within(tx, operation, () => ({})));

  const payments = pgTable("payments", { order: text() });
  const db: NodePgDatabase<{ payments: typeof payments }> = drizzle(url, { schema: { payments } });
  await onDrizzle(db).once(operation, async (tx) => {
    await tx.insert(payments).values({ order: "order-17" });
    const found = await tx.query.payments.findFirst();
    return json(201, found);
  });
  await db.transaction((tx) => onDrizzle(db).emit(tx, { topic: "paid", key: "order-17", payload: { cents: 100 } }));

  const knex = Knex({ client: "pg", connection: url });
  await onKnex(knex).once({ ...operation, isolation: "serializable", waitMs: 100 }, async (tx) => {
    await tx("payments").insert({ order: "order-17" });
    return { status: 201, headers: { "x-a": ["b", "c"] }, body: new Uint8Array() };
  });
  await knex.transaction((tx) => onKnex(knex).firstDelivery(tx, { consumer: "mailer", messageId: "m-1" }));

  const source = new DataSource({ type: "postgres", url });
  const typeorm: Hapax<EntityManager> = onTypeorm(source);
  await typeorm.once(operation, async (manager) => {
    await manager.query("INSERT INTO payments DEFAULT VALUES");
    return { status: 201 };
  });
}

function notLikeThis(hapax: Hapax<pg.PoolClient>): void {
  // @ts-expect-error There is no default tenant.
  void hapax.once({ scope: "POST /payments", key: "order-17" }, () => ({}));
  // @ts-expect-error An isolation level is one of three.
  void hapax.once({ ...operation, isolation: "read uncommitted" }, () => ({}));
  // @ts-expect-error Work says what it answers.
  void hapax.once(operation, async () => undefined);
  // @ts-expect-error A body is a text or bytes.
  void hapax.once(operation, () => ({ body: { paid: true } }));
  // @ts-expect-error A pool is no transaction.
  void hapax.within(new pg.Pool(), operation, () => ({}));
}

export { everywhere, notLikeThis };
