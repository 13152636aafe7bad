// What every driver must do besides the scenarios of testing/sdk, in one process.

import assert from "node:assert/strict";
import { once as event } from "node:events";
import { connect, createServer } from "node:net";
import { test } from "node:test";

import { ConflictError, InvalidError, NotInTransactionError, OutcomeUnknownError, Refused } from "hapax-once";

import { drivers } from "./drivers.mjs";
import { database, vectors } from "./world.mjs";

const world = await database();

let number = 0;
const operation = (about) => ({ tenant: "shop", scope: "POST /payments", key: `${about}-${number++}`, request: "{}" });
const paid = { status: 201, body: "paid" };

const prepared = { "postgres, prepared": (url) => drivers.postgres(url, true) };
const opened = await Promise.all(
  Object.entries({ ...drivers, ...prepared }).map(async ([name, open]) => ({
    name,
    open,
    driver: await open(world.url),
  })),
);

for (const { name, open, driver } of opened) {
  world.closing.push(() => driver.close());
  const write = (tx, effect) => driver.run(tx, "INSERT INTO effects (name) VALUES ($1)", [effect]);

  test(`${name}: bytes and repeated headers come back as they were`, async () => {
    const asked = { ...operation(name), request: Buffer.from([0xff, 0x00]) };
    const body = Buffer.from([0x00, 0xff, 0x5c, 0x78]);
    const answers = [];
    for (let times = 0; times < 2; times++)
      answers.push(await driver.hapax.once(asked, () => ({ headers: { "X-A": ["b", "c"] }, body })));
    for (const { status, headers, body: heard } of answers)
      assert.deepEqual([status, headers, heard], [200, { "x-a": ["b", "c"] }, body]);
    assert.deepEqual(
      answers.map(({ replayed }) => replayed),
      [false, true],
    );
    assert.equal(answers[1].expiresAt.getTime(), answers[0].expiresAt.getTime());
  });

  test(`${name}: a refusal after a statement that failed is stored, and the writes are gone`, async () => {
    const asked = operation(name);
    const work = async (tx) => {
      await write(tx, asked.key);
      await assert.rejects(write(tx, "forbidden"));
      throw new Refused({ status: 402, body: "no" });
    };
    for (const replayed of [false, true]) assert.deepEqual((await driver.hapax.once(asked, work)).replayed, replayed);
    assert.equal(await world.effects(asked.key), 0);
  });

  test(`${name}: what the work raises is raised, and the key is free`, async () => {
    const asked = operation(name);
    const raised = new Error("out of paper");
    const raising = async (tx) => {
      await write(tx, asked.key);
      throw raised;
    };
    await assert.rejects(driver.hapax.once(asked, raising), (error) => error === raised);
    assert.equal((await driver.hapax.once(asked, () => paid)).replayed, false);
    assert.equal(await world.effects(asked.key), 0);
  });

  test(`${name}: in a transaction of the caller's, what raises is taken back and the rest is committed`, async () => {
    const [asked, later] = [operation(name), operation(name)];
    await driver.transaction(async (tx) => {
      await write(tx, `${asked.key} before`);
      const raising = async (inner) => {
        await write(inner, asked.key);
        throw new Error("out of paper");
      };
      await assert.rejects(driver.hapax.within(tx, asked, raising), /out of paper/);
      const unavailing = async (inner) => {
        await write(inner, later.key);
        return { status: 503 };
      };
      assert.equal((await driver.hapax.within(tx, later, unavailing)).status, 503);
    });
    assert.deepEqual(
      [await world.effects(`${asked.key} before`), await world.effects(asked.key), await world.effects(later.key)],
      [1, 0, 0],
    );
    for (const free of [asked, later]) assert.equal((await driver.hapax.once(free, () => paid)).replayed, false);
  });

  test(`${name}: several operations share a transaction`, async () => {
    const all = [operation(name), operation(name)];
    await driver.transaction(async (tx) => {
      for (const asked of all) await driver.hapax.within(tx, asked, () => paid);
    });
    for (const asked of all) assert.equal((await driver.hapax.once(asked, () => paid)).replayed, true);
  });

  test(`${name}: an event or a first delivery outside of a transaction is told, and nothing is written`, async () => {
    const { key } = operation(name);
    await driver.autocommit(async (session) => {
      await assert.rejects(driver.hapax.emit(session, { topic: "paid", key, payload: {} }), NotInTransactionError);
      await assert.rejects(
        driver.hapax.firstDelivery(session, { consumer: name, messageId: key }),
        NotInTransactionError,
      );
    });
    assert.equal(await world.number("SELECT count(*) FROM hapax.outbox WHERE key = $1", [key]), 0);
    const first = () => driver.transaction((tx) => driver.hapax.firstDelivery(tx, { consumer: name, messageId: key }));
    assert.deepEqual([await first(), await first()], [true, false]);
  });

  test(`${name}: other transactions in the way each time are a conflict after six tries`, async () => {
    let tries = 0;
    const conflicting = async (tx) => {
      tries++;
      await driver.run(tx, "DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40P01'; END $$");
    };
    await assert.rejects(driver.hapax.once(operation(name), conflicting), ConflictError);
    assert.equal(tries, 6);
  });

  test(`${name}: what the database refuses at COMMIT is raised, and nothing is left`, async () => {
    const asked = operation(name);
    const deferred = (tx) => driver.run(tx, "INSERT INTO late (name) VALUES ($1)", ["nobody"]).then(() => paid);
    await assert.rejects(driver.hapax.once(asked, deferred));
    assert.equal((await driver.hapax.once(asked, () => paid)).replayed, false);
  });

  test(`${name}: a connection that is lost in the work leaves nothing, and the next call runs`, async () => {
    const asked = operation(name);
    const losing = async (tx) => {
      await write(tx, asked.key);
      await driver.run(tx, "SELECT pg_terminate_backend(pg_backend_pid())");
      return paid;
    };
    await assert.rejects(driver.hapax.once(asked, losing));
    assert.equal(await world.effects(asked.key), 0);
    // postgres.js tells the next one that uses the connection of it, too.
    const again = () => driver.hapax.once(asked, () => paid);
    assert.equal((await again().catch(again)).replayed, false);
  });

  // A statement that was prepared does not say COMMIT on its way.
  if (name in prepared) continue;
  test(`${name}: a lost COMMIT, and nobody to ask, is unknown`, async () => {
    const { url, isCut, close } = await cutting(world.url);
    const apart = await open(url);
    await apart.hapax.once(operation(name), () => paid);
    isCut.next = true;
    const asked = operation(name);
    const work = (tx) => apart.run(tx, "INSERT INTO effects (name) VALUES ($1)", [asked.key]).then(() => paid);
    await assert.rejects(apart.hapax.once(asked, work), OutcomeUnknownError);
    close();
    await Promise.resolve(apart.close()).catch(() => undefined);
    // Whoever asks with the key hears what became of it.
    assert.ok(
      (await driver.hapax.once({ ...asked, waitMs: 5000 }, (tx) => write(tx, asked.key).then(() => paid))).body.equals(
        Buffer.from("paid"),
      ),
    );
    assert.equal(await world.effects(asked.key), 1);
  });
}

/** A way to the database that ends for good at the next COMMIT. */
async function cutting(database) {
  const { hostname, port } = new URL(database);
  const isCut = { next: false };
  const sockets = new Set();
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    for (const socket of [client, upstream]) sockets.add(socket.on("error", () => undefined));
    upstream.pipe(client);
    client.on("data", (bytes) => {
      upstream.write(bytes);
      if (!isCut.next || !bytes.toString("latin1").toLowerCase().includes("commit")) return;
      server.close();
      client.destroy();
    });
    client.on("close", () => upstream.end());
  }).listen(0, "127.0.0.1");
  await event(server, "listening");
  const url = new URL(database);
  url.port = server.address().port;
  const close = () => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  return { url: url.href, isCut, close };
}

test("a name or a request of the wrong type is refused before anything is sent", async () => {
  const { hapax } = opened[0].driver;
  const ask = (parts) => hapax.once({ ...operation("typed"), ...parts }, () => assert.fail("it ran"));
  for (const key of [17, null, undefined, Buffer.from("k"), 17n, Symbol("k"), {}, ["k"]])
    for (const name of ["key", "tenant", "scope"]) await assert.rejects(ask({ [name]: key }), InvalidError);
  for (const request of [17, {}, true]) await assert.rejects(ask({ request }), InvalidError);
});

test("an operation has one id", async () => {
  for (const { tenant, scope, key, operation } of vectors("operations.json")) {
    const { rows } = await world.pool.query("SELECT hapax.operation_id($1, $2, $3) AS id", [tenant, scope, key]);
    assert.equal(rows[0].id.replaceAll("-", ""), operation);
  }
});

test("a request has one fingerprint", async () => {
  const { driver } = opened[0];
  for (const { salt, fingerprint, tenant, method, path, query, body } of vectors("fingerprints.json")) {
    await world.pool.query("UPDATE hapax.meta SET salt = decode($1, 'hex')", [salt]);
    const asked = { ...operation("fingerprint"), tenant, method, path, query, request: body };
    await driver.hapax.once(asked, () => paid);
    const { rows } = await world.pool.query(
      "SELECT encode(fingerprint, 'hex') AS stored FROM hapax.operations WHERE key = $1",
      [asked.key],
    );
    assert.deepEqual(rows, [{ stored: fingerprint }]);
  }
});
