// The payments API as its clients meet it, killed in mid-work too.
//
// DATABASE_URL=postgres://... [KILLS=40] [SEED=17] node --test payments.test.mjs

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";

import pg from "pg";

const connectionString = process.env.DATABASE_URL;
const KILLS = Number(process.env.KILLS ?? 40);
const SEED = Number(process.env.SEED ?? 17);
const RUN = randomBytes(4).toString("hex");
const PATIENCE_MILLIS = 60_000;
const KEYS_PER_KILL = 8;

// What a test begins itself, in the words of the request it stands for.
const BEGIN = `SELECT operation, fence FROM hapax.begin('shop', 'POST /payments', $1,
               request => $2, method => 'POST', path => '/payments')`;

// The API in a process of its own.
class Server {
  static async create(options) {
    const server = new Server();
    Object.assign(server, { options, port: await freePort() });
    await server.start();
    return server;
  }

  async start() {
    const env = { ...process.env, PGOPTIONS: this.options };
    const script = new URL("payments.mjs", import.meta.url).pathname;
    const stdio = ["ignore", "pipe", "inherit"];
    this.process = spawn(process.execPath, [script, String(this.port)], { env, stdio });
    await once(this.process.stdout, "data", { signal: AbortSignal.timeout(PATIENCE_MILLIS) });
  }

  async kill() {
    this.process.kill("SIGKILL");
    await once(this.process, "exit");
  }

  async post(key, body) {
    const headers = { Connection: "close" };
    if (key !== null) headers["Idempotency-Key"] = `"${key}"`;
    const signal = AbortSignal.timeout(10_000);
    const url = `http://127.0.0.1:${this.port}/payments`;
    const answer = await fetch(url, { method: "POST", headers, body, signal });
    return { status: answer.status, headers: answer.headers, body: await answer.text() };
  }
}

let servers;
const db = new pg.Pool({ connectionString, max: 2 });

before(async () => {
  const serializable = "-c default_transaction_isolation=serializable";
  servers = [await Server.create(""), await Server.create(serializable)];
});

after(async () => {
  await Promise.all(servers.map((server) => server.kill()));
  await db.end();
});

test("a retry hears the first answer to the byte", async () => {
  const key = fresh("retry");
  const first = await servers[0].post(key, order(key));
  const again = await servers[1].post(key, order(key));
  assert.deepEqual([first.status, again.status], [201, 201]);
  assert.deepEqual(again.body, first.body);
  for (const name of ["content-type", "idempotency-expires"]) {
    assert.ok(first.headers.get(name));
    assert.equal(again.headers.get(name), first.headers.get(name));
  }
  assert.equal(first.headers.get("idempotent-replayed"), null);
  assert.equal(again.headers.get("idempotent-replayed"), "true");
  await checkPaid(key, 1);
});

test("thirty-two at once pay once", async () => {
  for (const server of servers) {
    const key = fresh(`crowd-${server.port}`);
    const asked = Array.from({ length: 32 }, () => persist([server], key, Math.random, []));
    const answers = await Promise.all(asked);
    assert.equal(new Set(answers).size, 1);
    await checkPaid(key, 1);
  }
});

test("another request under a used key is refused", async () => {
  const key = fresh("used");
  await servers[0].post(key, order(key));
  const refused = await servers[0].post(key, order(key, "ada", 200));
  assert.equal(refused.status, 422);
  assert.deepEqual(JSON.parse(refused.body).differs, ["body"]);
  await checkPaid(key, 1);
});

test("a failure for good is kept and leaves no payment", async () => {
  for (const [name, account, cents, expected] of [
    ["poor", "eve", 101, 402],
    ["stranger", "nobody", 1, 404],
    ["nothing", "ada", 0, 400],
  ]) {
    const key = fresh(name);
    const first = await servers[0].post(key, order(key, account, cents));
    const again = await servers[1].post(key, order(key, account, cents));
    assert.deepEqual([first.status, again.status], [expected, expected]);
    assert.deepEqual(again.body, first.body);
    assert.equal(again.headers.get("idempotent-replayed"), "true");
    await checkPaid(key, 0);
  }
});

test("without one key nothing is paid", async () => {
  const name = fresh("keyless");
  for (const key of [null, "", " ", "k".repeat(256), 'a" "b']) {
    assert.equal((await servers[0].post(key, order(name))).status, 400, key);
  }
  await checkPaid(name, 0);
});

test("while another is at work a request is told when to ask again", async () => {
  const key = fresh("busy");
  await beginElsewhere(key, async () => {
    const refused = await servers[0].post(key, order(key));
    assert.deepEqual([refused.status, refused.headers.get("retry-after")], [409, "1"]);
  });
  assert.equal((await servers[0].post(key, order(key))).status, 201);
  await checkPaid(key, 1);
});

test("a lost connection is told, and the next request pays", async () => {
  const key = fresh("lost");
  await beginElsewhere(key, async () => {
    const asked = servers[0].post(key, order(key));
    await terminateWhoeverWaits();
    assert.equal((await asked).status, 503);
  });
  assert.equal((await servers[0].post(key, order(key))).status, 201);
  await checkPaid(key, 1);
});

test("what was committed without an end is in doubt once its lease is over", async () => {
  const key = fresh("doubt");
  await db.query(BEGIN, [key, order(key)]);
  const running = await servers[0].post(key, order(key));
  assert.equal(running.status, 409);
  assert.ok(Number(running.headers.get("retry-after")) > 1);
  await db.query("UPDATE hapax.operations SET until = 1 WHERE key = $1", [key]);
  const doubtful = await servers[0].post(key, order(key));
  assert.deepEqual([doubtful.status, doubtful.headers.get("retry-after")], [409, null]);
  await checkPaid(key, 0);
});

test("a retry after retention is refused while there is a tombstone", async () => {
  const key = fresh("late");
  await servers[0].post(key, order(key, "eve", 101));
  const past = "expires_at = hapax.clock() - 1, tombstone = 3600000000";
  await db.query(`UPDATE hapax.operations SET ${past} WHERE key = $1`, [key]);
  assert.equal((await servers[0].post(key, order(key, "eve", 101))).status, 410);
});

test("killed in mid-work every order is paid once", async () => {
  const [dice, answers, cut] = [seeded(SEED), new Map(), []];
  for (let kill = 0; kill < KILLS; kill++) {
    const keys = Array.from({ length: KEYS_PER_KILL }, (_, at) => fresh(`kill-${kill}-${at}`));
    const asked = [...keys, ...keys].map(async (key) => [key, await persist(servers, key, dice, cut)]);
    const victim = servers[Math.floor(dice() * servers.length)];
    // The instant is what is tried: it is waited for, not for anything to happen.
    await sleep(dice() * 60);
    await victim.kill();
    await victim.start();
    for (const [key, body] of await Promise.all(asked)) {
      assert.equal(body, answers.get(key) ?? body);
      answers.set(key, body);
    }
  }
  for (const [key, body] of answers) {
    const again = await servers[0].post(key, order(key));
    assert.deepEqual([again.status, again.headers.get("idempotent-replayed")], [201, "true"]);
    assert.equal(again.body, body);
    await checkPaid(key, 1);
  }
  assert.equal(answers.size, KILLS * KEYS_PER_KILL);
  assert.ok(cut.length > 0, "no kill met a request");
  console.log(`${KILLS} kills, seed ${SEED}: ${answers.size} keys, ${cut.length} requests cut off`);
});

// Asks again with the same key until it is paid; the answer's body. `cut` takes the keys of
// requests that were cut off before their answer.
async function persist(servers, key, dice, cut) {
  const asking = AbortSignal.timeout(PATIENCE_MILLIS);
  while (!asking.aborted) {
    const server = servers[Math.floor(dice() * servers.length)];
    try {
      const { status, body } = await server.post(key, order(key));
      if (status === 201) return body;
      assert.ok([409, 503].includes(status), `${key}: ${status} ${body}`);
      await sleep(dice() * 100);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;
      if (error.cause?.code !== "ECONNREFUSED") cut.push(key);
      await sleep(20);
    }
  }
  throw new Error(`${key} was never answered`);
}

// The payments, the events and the completed keys of an order named like its key.
async function checkPaid(key, times) {
  const counts = `SELECT (SELECT count(*) FROM payments WHERE order_id = $1)::int AS payments,
    (SELECT count(*) FROM hapax.outbox WHERE key = $1)::int AS events,
    (SELECT count(*) FROM hapax.operations_readable
     WHERE key = $1 AND state = 'completed')::int AS completed,
    (SELECT sum(cents)::int FROM (TABLE accounts UNION ALL
     SELECT account, cents FROM payments) AS all_money) AS money`;
  const found = (await db.query(counts, [key])).rows[0];
  const expected = { payments: times, events: times, completed: times, money: 200_000_100 };
  assert.deepEqual({ ...found }, expected, key);
}

// Holds the operation in a transaction that is then rolled back.
async function beginElsewhere(key, meanwhile) {
  const other = await db.connect();
  try {
    await other.query("BEGIN");
    await other.query(BEGIN, [key, order(key)]);
    await meanwhile();
  } finally {
    await other.query("ROLLBACK");
    other.release();
  }
}

async function terminateWhoeverWaits() {
  const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event = 'advisory'`;
  while ((await db.query(terminate)).rowCount === 0) await sleep(10);
}

function order(name, account = "ada", cents = 100) {
  return Buffer.from(JSON.stringify({ order: name, account, cents }));
}

function fresh(name) {
  return `${name}-${RUN}`;
}

// A port that the system gives to nobody who asks for any.
async function freePort() {
  for (;;) {
    const port = 12_000 + Math.floor(Math.random() * 20_000);
    const probe = createServer();
    const free = await new Promise((resolve) => {
      probe.once("error", () => resolve(false)).listen(port, "127.0.0.1", () => resolve(true));
    });
    if (!free) continue;
    probe.close();
    return port;
  }
}

// Mulberry32: the same numbers for the same seed.
function seeded(state) {
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}
