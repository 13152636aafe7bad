// A payments API in every framework, and what each of them must do alike.

import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";

import pg from "pg";

import { Refused, json } from "hapax-once";
import { hapax } from "hapax-once/pg";

/** What the handlers of all frameworks do; what they say is `status`, `headers` and `value`. */
export async function pay(tx, { effect, how }) {
  await tx.query("INSERT INTO effects (name) VALUES ($1)", [effect]);
  const said = (status, value = { paid: effect }, headers = {}) => ({ status, value, headers });
  switch (how) {
    case "refuse":
      return said(402, { error: "no money" });
    case "throw": {
      // A statement that failed does not keep a refusal from being stored.
      await tx.query("INSERT INTO effects (name) VALUES ('forbidden')").catch(() => undefined);
      throw new Refused(json(402, { error: "no money" }));
    }
    case "raise":
      throw new Error("out of paper");
    case "later":
      return said(503, { error: "later" });
    case "slow":
      await sleep(300);
      return said(201);
    case "conflict": {
      const attempts = Number((await tx.query("SELECT nextval('attempts')")).rows[0].nextval);
      if (attempts === 1) throw Object.assign(new Error("in the way"), { code: "40001", severity: "ERROR" });
      return said(201, { attempts }, { [`x-attempt-${attempts}`]: "yes" });
    }
    case "cookie":
      return said(201, { paid: effect }, { "set-cookie": "session=1", "x-paid": "yes" });
    default:
      return said(201);
  }
}

/**
 * Holds a framework against what all of them do. `serve(hapax, options)` starts the API, with `POST /payments`, `POST /notes` that ignores
 * `/sent_at`, and `GET /payments`; it returns its address, and how to stop it.
 */
export function check(framework, world, serve) {
  const tenant = () => "shop";
  let number = 0;
  const fresh = (about) => `${framework}-${about}-${number++}`;

  async function serving(work, options = { tenant }, pool = world.pool) {
    const { url, stop } = await serve(hapax(pool), options);
    const ask = async (body, { key, path = "/payments", method = "POST", headers = {} } = {}) => {
      const sent = typeof body === "string" || body === undefined ? body : JSON.stringify(body);
      const keyed = key === undefined ? {} : { "idempotency-key": key };
      const response = await fetch(url + path, {
        method,
        body: sent,
        headers: { "content-type": "application/json", ...keyed, ...headers },
      });
      return { status: response.status, headers: response.headers, text: await response.text() };
    };
    try {
      await work(ask, url);
    } finally {
      await stop();
    }
  }

  const code = ({ headers, text }) => {
    assert.equal(headers.get("content-type"), "application/problem+json");
    assert.equal(headers.get("hapax-refusal"), JSON.parse(text).code);
    return JSON.parse(text).code;
  };

  test(`${framework}: the first answer is sent again, byte for byte`, () =>
    serving(async (ask) => {
      const [key, effect] = [fresh("key"), fresh("replay")];
      const first = await ask({ effect, how: "cookie" }, { key });
      const second = await ask(`{ "how": "cookie", "effect": ${JSON.stringify(effect)} }`, { key: `"${key}"` });
      assert.deepEqual([first.status, second.status], [201, 201]);
      assert.deepEqual(JSON.parse(first.text), { paid: effect });
      assert.equal(second.text, first.text);
      assert.equal(second.headers.get("content-type"), first.headers.get("content-type"));
      assert.deepEqual(
        [first, second].map(({ headers }) => headers.get("idempotent-replayed")),
        [null, "true"],
      );
      assert.deepEqual(
        [first, second].map(({ headers }) => headers.get("x-paid")),
        ["yes", "yes"],
      );
      assert.deepEqual(
        [first, second].map(({ headers }) => headers.get("set-cookie")),
        ["session=1", null],
        "of one person",
      );
      assert.ok(Date.parse(first.headers.get("idempotency-expires")) > Date.now());
      assert.equal(second.headers.get("idempotency-expires"), first.headers.get("idempotency-expires"));
      assert.equal(await world.effects(effect), 1);
    }));

  test(`${framework}: another request under the key is told, with what differs`, () =>
    serving(async (ask) => {
      const [key, effect] = [fresh("key"), fresh("mismatch")];
      await ask({ effect, amount: 1 }, { key });
      const other = await ask({ effect, amount: 1.0000000000000001 }, { key });
      assert.equal(other.status, 201, "JSON.stringify writes 1");
      const exact = await ask(`{"effect": "${effect}", "amount": 1.0000000000000001}`, { key });
      assert.deepEqual([exact.status, code(exact), JSON.parse(exact.text).differs], [422, "key-reused", ["body"]]);
      const query = await ask({ effect, amount: 1 }, { key, path: "/payments?dry=1" });
      assert.deepEqual(JSON.parse(query.text).differs, ["query"]);
      assert.equal(await world.effects(effect), 1);
    }));

  test(`${framework}: members that do not matter are not compared`, () =>
    serving(async (ask) => {
      const [key, effect] = [fresh("key"), fresh("ignored")];
      await ask({ effect, sent_at: 1 }, { key, path: "/notes" });
      const again = await ask({ effect, sent_at: 2 }, { key, path: "/notes" });
      assert.deepEqual([again.status, again.headers.get("idempotent-replayed")], [201, "true"]);
    }));

  test(`${framework}: a key that is missing, malformed or there twice is refused`, () =>
    serving(async (ask, url) => {
      const effect = fresh("unkeyed");
      assert.equal(code(await ask({ effect })), "key-missing");
      assert.equal(code(await ask({ effect }, { key: '"unfinished' })), "key-malformed");
      assert.equal(code(await ask({ effect }, { key: '""' })), "key-empty");
      assert.equal(await twice(url, { effect }), "key-repeated");
      assert.equal(await world.effects(effect), 0);
    }));

  test(`${framework}: a failure that is kept is replayed, and its writes are gone`, () =>
    serving(async (ask) => {
      for (const how of ["refuse", "throw"]) {
        const [key, effect] = [fresh("key"), fresh(how)];
        const [first, second] = [await ask({ effect, how }, { key }), await ask({ effect, how }, { key })];
        assert.deepEqual([first.status, second.status], [402, 402]);
        assert.deepEqual([JSON.parse(first.text), second.text], [{ error: "no money" }, first.text]);
        assert.equal(second.headers.get("idempotent-replayed"), "true");
        assert.equal(await world.effects(effect), 0);
      }
    }));

  test(`${framework}: what raises, and what may pass, leaves nothing`, () =>
    serving(async (ask) => {
      for (const [how, status] of [
        ["raise", 500],
        ["later", 503],
      ]) {
        const [key, effect] = [fresh("key"), fresh(how)];
        const [first, second] = [await ask({ effect, how }, { key }), await ask({ effect, how }, { key })];
        assert.deepEqual([first.status, second.status], [status, status]);
        assert.deepEqual(
          [second.headers.get("idempotent-replayed"), first.headers.get("idempotency-expires")],
          [null, null],
        );
        assert.equal(await world.effects(effect), 0);
      }
    }));

  test(`${framework}: a duplicate that waits too long hears that the key is in flight`, () =>
    serving(
      async (ask) => {
        const [key, effect] = [fresh("key"), fresh("slow")];
        const first = ask({ effect, how: "slow" }, { key });
        await sleep(100);
        const second = await ask({ effect, how: "slow" }, { key });
        assert.deepEqual([second.status, code(second)], [409, "key-in-flight"]);
        assert.ok(Number(second.headers.get("retry-after")) >= 1);
        assert.equal((await first).status, 201);
        assert.equal(await world.effects(effect), 1);
      },
      { tenant, waitMs: 1 },
    ));

  test(`${framework}: of eight duplicates at once one runs, and all hear the same`, () =>
    serving(async (ask) => {
      const [key, effect] = [fresh("key"), fresh("storm")];
      const heard = await Promise.all(Array.from({ length: 8 }, () => ask({ effect, how: "slow" }, { key })));
      assert.deepEqual(
        new Set(heard.map(({ status, text }) => `${status} ${text}`)),
        new Set([`201 ${heard[0].text}`]),
      );
      assert.equal(heard.filter(({ headers }) => headers.has("idempotent-replayed")).length, 7);
      assert.equal(await world.effects(effect), 1);
    }));

  test(`${framework}: a conflict runs the handler again, and nothing of the first try is sent`, () =>
    serving(async (ask) => {
      await world.pool.query("DROP SEQUENCE IF EXISTS attempts; CREATE SEQUENCE attempts");
      const [key, effect] = [fresh("key"), fresh("conflict")];
      const answer = await ask({ effect, how: "conflict" }, { key });
      assert.deepEqual([answer.status, JSON.parse(answer.text)], [201, { attempts: 2 }]);
      assert.deepEqual([answer.headers.get("x-attempt-1"), answer.headers.get("x-attempt-2")], [null, "yes"]);
      assert.equal(await world.effects(effect), 1);
    }));

  test(`${framework}: safe methods pass`, () =>
    serving(async (ask) => {
      const answer = await ask(undefined, { method: "GET" });
      assert.deepEqual([answer.status, JSON.parse(answer.text).payments >= 0], [200, true]);
      assert.equal(answer.headers.get("idempotency-expires"), null);
    }));

  test(`${framework}: without the database nothing runs, and the client hears that`, async () => {
    const nowhere = new pg.Pool({ connectionString: "postgres://postgres@127.0.0.1:1/nowhere" });
    const work = async (ask) => {
      const answer = await ask({ effect: fresh("away") }, { key: fresh("key") });
      assert.deepEqual(
        [answer.status, code(answer), answer.headers.get("retry-after")],
        [503, "store-unavailable", "1"],
      );
    };
    await serving(work, { tenant }, nowhere);
    await nowhere.end();
  });

  test(`${framework}: tenants do not hear each other's answers`, () =>
    serving(
      async (ask) => {
        const [key, effect] = [fresh("key"), fresh("tenants")];
        for (const who of ["ada", "bob"])
          assert.equal(
            (await ask({ effect }, { key, headers: { "x-who": who } })).headers.get("idempotent-replayed"),
            null,
          );
        assert.equal(await world.effects(effect), 2);
      },
      { tenant: (request) => (request.headers ?? request.req.header())["x-who"] },
    ));
}

/** Sends the header on two lines, which fetch does not. */
async function twice(url, body) {
  const { request } = await import("node:http");
  const { promise, resolve, reject } = deferred();
  const headers = [
    "Content-Type",
    "application/json",
    "Idempotency-Key",
    '"one"',
    "Idempotency-Key",
    '"two"',
    "Host",
    new URL(url).host,
    "Connection",
    "close",
  ];
  const sent = JSON.stringify(body);
  const asking = request(
    `${url}/payments`,
    { method: "POST", headers: [...headers, "Content-Length", String(sent.length)] },
    (response) => {
      response.resume();
      resolve(response.headers["hapax-refusal"]);
    },
  );
  asking.on("error", reject);
  asking.end(sent);
  return await promise;
}

function deferred() {
  let settle;
  const promise = new Promise((resolve, reject) => (settle = { resolve, reject }));
  return { promise, ...settle };
}
