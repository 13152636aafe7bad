// The package against the SQL functions called by hand, with the same driver, in alternating rounds: node bench.mjs [DRIVER...], all if none is named

import { randomUUID } from "node:crypto";

import { drivers } from "./drivers.mjs";
import { withDatabase } from "./world.mjs";

// Short rounds and many: what else the machine does then meets both alike.
const ROUNDS = 401;
const OPERATIONS_PER_ROUND = 10;
// A service that runs has compiled what it uses.
const WARMING_ROUNDS = 400;

const scope = "POST /payments";
const request = '{"cents":100}';
const write = (driver, tx, key) => driver.run(tx, "INSERT INTO effects (name) VALUES ($1)", [key]);

/** As in examples/node. */
async function byHand(driver, key) {
  await driver.transaction(async (tx) => {
    const begin = "SELECT * FROM hapax.begin($1, $2, $3, request => $4::bytea, method => $5, path => $6, query => $7)";
    const [{ operation, fence }] = await driver.rows(tx, begin, [
      "shop",
      scope,
      key,
      Buffer.from(request),
      "POST",
      "/payments",
      "",
    ]);
    if (driver.savepoint === undefined) {
      await driver.run(tx, "SAVEPOINT work");
      await write(driver, tx, key);
    } else {
      await driver.savepoint(tx, (inner) => write(driver, inner, key));
    }
    const finish = "SELECT 1 FROM hapax.finish($1::text::uuid, $2::text::bigint, 201, $3::text::jsonb, $4::bytea)";
    await driver.rows(tx, finish, [operation, String(fence), "{}", Buffer.from("paid")]);
  });
}

async function once(driver, key) {
  const operation = { tenant: "shop", scope, key, request, method: "POST", path: "/payments" };
  await driver.hapax.once(operation, async (tx) => {
    await write(driver, tx, key);
    return { status: 201, body: "paid" };
  });
}

async function round(driver, way) {
  const began = performance.now();
  for (let at = 0; at < OPERATIONS_PER_ROUND; at++) await way(driver, randomUUID());
  return (performance.now() - began) / OPERATIONS_PER_ROUND;
}

const median = (figures) => figures.sort((one, other) => one - other)[Math.floor(figures.length / 2)];

async function measure(name, url) {
  // With prepared statements, where the driver lets its users choose.
  const driver = await drivers[name](url, true);
  for (let at = 0; at < WARMING_ROUNDS; at++) for (const way of [once, byHand]) await round(driver, way);
  const rounds = [];
  for (let at = 0; at < ROUNDS; at++) {
    // Who comes first changes, so that neither has the better half of it.
    const ways = at % 2 === 0 ? [once, byHand] : [byHand, once];
    const took = new Map();
    for (const way of ways) took.set(way, await round(driver, way));
    rounds.push({ package: took.get(once), hand: took.get(byHand) });
  }
  await driver.close();
  const ratio = median(rounds.map((one) => one.package / one.hand));
  const micros = (which) => Math.round(1000 * median(rounds.map((one) => one[which])));
  const figure = { driver: name, hand_us: micros("hand"), once_us: micros("package"), ratio: Number(ratio.toFixed(3)) };
  console.log(JSON.stringify(figure));
}

await withDatabase(async ({ url }) => {
  const names = process.argv.slice(2);
  for (const name of names.length === 0 ? Object.keys(drivers) : names) await measure(name, url);
});
