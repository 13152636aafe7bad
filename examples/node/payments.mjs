// A payments API that charges once, however often it is asked.
//
// The charge, the payment, its event and the answer are committed together, or not at all.
//
// DATABASE_URL=postgres://... node payments.mjs [PORT]

import express from "express";
import pg from "pg";

import { Answer, once, Refused } from "./hapax.mjs";

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: 10 });
// A connection may break between two queries, in use or not. Whoever uses it next hears of it.
const report = (error) => console.error(`a connection was lost: ${error.message}`);
pool.on("error", report).on("connect", (client) => client.on("error", report));

const app = express().disable("x-powered-by");

app.post("/payments", express.raw({ type: () => true }), async (request, response) => {
  // One shop calls this API. With several, the tenant is who the caller has proved to be.
  await once(pool, request, response, { tenant: "shop", work: charge });
});

// What happens once. A Refused takes its writes back and is the answer from then on.
async function charge(db, body) {
  const { order, account, cents } = parse(body);
  const insert = "INSERT INTO payments (order_id, account, cents) VALUES ($1, $2, $3) RETURNING id";
  let payment;
  try {
    payment = Number((await db.query(insert, [order, account, cents])).rows[0].id);
    await db.query("UPDATE accounts SET cents = cents - $1 WHERE name = $2", [cents, account]);
  } catch (error) {
    if (error.code === "23503") throw new Refused(404, { error: "there is no such account" });
    if (error.code === "23514") throw new Refused(402, { error: "there is not enough money" });
    throw error;
  }
  const receipt = { payment, order, cents };
  const event = JSON.stringify(receipt);
  await db.query("SELECT hapax.emit('payment.completed', $1, $2)", [order, event]);
  return new Answer(201, receipt);
}

function parse(body) {
  let asked;
  try {
    asked = JSON.parse(body) ?? {};
  } catch {
    throw new Refused(400, { error: "send an order, an account and cents" });
  }
  const { order, account, cents } = asked;
  if (typeof order !== "string" || typeof account !== "string" || !Number.isInteger(cents)) {
    throw new Refused(400, { error: "send two texts and a whole number" });
  }
  const bytes = Buffer.byteLength(order);
  if (cents <= 0 || cents > 1e12 || bytes < 1 || bytes > 255 || (order + account).includes("\0")) {
    throw new Refused(400, { error: "send a name for the order, and a sum above zero" });
  }
  return { order, account, cents };
}

const port = Number(process.argv[2] ?? 3000);
app.listen(port, "127.0.0.1", () => console.log(`payments at http://127.0.0.1:${port}/payments`));
