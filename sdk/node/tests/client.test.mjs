// The client, against real servers, and killed.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

import express from "express";

import * as hapaxOnce from "hapax-once";
import { idempotency } from "hapax-once/express";
import { hapax } from "hapax-once/pg";

import { pay } from "./payments.mjs";
import { database, vectors } from "./world.mjs";

const { Client } = hapaxOnce;
const world = await database();
let folder;
before(async () => (folder = await mkdtemp(join(tmpdir(), "hapax-client-"))));
after(() => rm(folder, { recursive: true }));

let number = 0;
const fresh = () => join(folder, `${number++}.journal`);
const quick = { pauseMs: 1, pauseMsMax: 2, attemptsMax: 3, deadlineMs: 3000 };

/** A server that answers each request with the next of these, and with the last from then on. */
async function serving(answers, work) {
  const [requests, waiting] = [[], [...answers]];
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    requests.push({
      method: request.method,
      url: request.url,
      headers: request.headers,
      body: Buffer.concat(chunks).toString(),
    });
    const answer = waiting.length > 1 ? waiting.shift() : waiting[0];
    if (typeof answer === "function") await answer(request, response);
    else response.writeHead(answer.status ?? 200, answer.headers ?? {}).end(answer.body ?? "");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    await work(`http://127.0.0.1:${server.address().port}/charges`, requests);
  } finally {
    server.close().closeAllConnections();
  }
}

/** An address where nobody listens. */
async function nowhere() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return `http://127.0.0.1:${port}/`;
}

const silence = (request) => request.socket.destroy();
const keys = (requests) => [...new Set(requests.map(({ headers }) => headers["idempotency-key"]))];

async function using(options, work) {
  const client = new Client({ ...quick, ...options });
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

test("an answer means the same over the wire", async () => {
  for (const { status, headers, repeat, conclusion, conclusion_after_silence } of vectors("answers.json")) {
    const about = JSON.stringify({ status, headers });
    const client = new Client({ ...quick, deadlineMs: 2000 });
    for (const [answers, expected] of [
      [[{ status, headers }], conclusion],
      [[silence, { status, headers }], conclusion_after_silence],
    ]) {
      await serving(answers, async (url) => {
        const heard = await client.send({ url, json: {} }).then(
          () => "done",
          (error) => error.conclusion ?? assert.fail(error),
        );
        assert.equal(heard, expected, about);
      });
    }
    await serving([{ status, headers }, { status: 200 }], async (url, requests) => {
      await new Client(quick).send({ url, json: {} }).catch(() => undefined);
      assert.equal(requests.length > 1, repeat, about);
      assert.equal(keys(requests).length, 1, "one key for all attempts");
    });
  }
});

test("a request says its key, its time and that nobody else is to repeat it", () =>
  serving([{ status: 201, body: "charged" }], async (url, requests) => {
    const answer = await new Client().send({ url, json: { cents: 100 }, key: 'a"b' });
    assert.deepEqual([answer.status, answer.body.toString(), answer.attempts, answer.key], [201, "charged", 1, 'a"b']);
    const [{ method, headers, body }] = requests;
    assert.deepEqual(
      [method, headers["idempotency-key"], headers["content-type"], body],
      ["POST", '"a\\"b"', "application/json", '{"cents":100}'],
    );
    assert.deepEqual([headers["hapax-deadline"], headers["hapax-retry"]], ["10000", "never"]);
  }));

test("where nobody listens it gives up, because nothing was sent", async () => {
  const error = await new Client(quick).send({ url: await nowhere(), json: {} }).catch((error) => error);
  assert.ok(error instanceof hapaxOnce.CallGaveUpError);
  assert.equal(error.unfinished.attempts, 3);
});

test("a body cut short is no answer, and what is read alone leaves no doubt", () =>
  serving(
    [
      (_request, response) =>
        response.writeHead(201, { "content-length": "10" }).write("cut", () => response.destroy()),
    ],
    async (url) => {
      await assert.rejects(new Client(quick).send({ url, json: {} }), hapaxOnce.CallUnknownError);
      await assert.rejects(new Client(quick).send({ url, method: "GET" }), hapaxOnce.CallGaveUpError);
    },
  ));

test("a Retry-After is waited for, and one beyond the deadline ends the call", async () => {
  const busy = {
    status: 409,
    headers: { "content-type": "application/problem+json", "hapax-refusal": "key-in-flight", "retry-after": "1" },
  };
  await serving([busy, { status: 201 }], async (url) => {
    const began = Date.now();
    assert.equal((await new Client(quick).send({ url, json: {} })).status, 201);
    assert.ok(Date.now() - began >= 1000);
  });
  await serving([{ status: 503, headers: { "retry-after": "999999" } }], async (url, requests) => {
    await assert.rejects(new Client(quick).send({ url, json: {} }), hapaxOnce.CallUnknownError);
    assert.equal(requests.length, 1);
  });
});

test("key and request are on disk before the first byte arrives, and credentials never are", async () => {
  const journal = fresh();
  let written;
  const answer = async (_request, response) => {
    written = await readFile(journal, "utf8");
    response.writeHead(201).end("charged");
  };
  await serving([answer], async (url, requests) => {
    const headers = { authorization: "Bearer sk_client" };
    await using({ journal, headers }, (client) =>
      client.send({ name: "a", url, json: { cents: 1 }, headers: { "x-api-key": "sk_call", "x-a": "b" } }),
    );
    const [{ headers: sent }] = requests;
    assert.deepEqual([sent.authorization, sent["x-api-key"], sent["x-a"]], ["Bearer sk_client", "sk_call", "b"]);
    assert.ok(
      written.includes(`"key":${sent["idempotency-key"]}`) &&
        written.includes(Buffer.from('{"cents":1}').toString("base64")),
    );
    assert.ok(!(await readFile(journal, "utf8")).includes("sk_"));
    assert.equal((await stat(journal)).mode & 0o777, 0o600);
  });
});

test("a name with an answer is answered, and never sent again", () =>
  serving([{ status: 201, headers: { "x-a": "b" }, body: "charged" }], async (url, requests) => {
    const journal = fresh();
    const call = { name: "charge", url, json: { cents: 1 } };
    const first = await using({ journal }, (client) => client.send(call));
    const second = await using({ journal }, (client) => client.send(call));
    assert.deepEqual([first.recorded, second.recorded, requests.length], [false, true, 1]);
    assert.deepEqual(
      [second.status, second.headers.get("x-a"), second.body.toString(), second.key],
      [201, "b", "charged", first.key],
    );
    await using({ journal }, async (client) => {
      await assert.rejects(client.send({ ...call, json: { cents: 2 } }), hapaxOnce.NameReusedError);
      await client.forget("charge");
      assert.notEqual((await client.send({ ...call, json: { cents: 2 } })).key, first.key);
    });
  }));

test("a recorded refusal is told without sending anything", () =>
  serving([{ status: 402, body: "no money" }], async (url, requests) => {
    const journal = fresh();
    for (const recorded of [false, true]) {
      const error = await using({ journal }, (client) => client.send({ name: "a", url, json: {} })).catch(
        (error) => error,
      );
      assert.ok(error instanceof hapaxOnce.CallRefusedError);
      assert.deepEqual([error.answer.status, error.answer.recorded], [402, recorded]);
    }
    assert.equal(requests.length, 1);
  }));

test("what is unknown is asked for again under its name, with the same key", () =>
  serving([() => undefined, silence, { status: 201 }], async (url, requests) => {
    const journal = fresh();
    const call = { name: "a", url, json: {} };
    await using({ journal }, (client) =>
      assert.rejects(client.send({ ...call, deadlineMs: 200 }), hapaxOnce.CallUnknownError),
    );
    assert.deepEqual(await using({ journal }, (client) => client.resume()), [], "nothing is pending");
    assert.equal((await using({ journal }, (client) => client.send(call))).status, 201);
    assert.deepEqual([keys(requests).length, requests.length], [1, 3]);
  }));

test("several at once send an operation once", () =>
  serving([async (_request, response) => (await sleep(20), response.end("charged"))], async (url, requests) => {
    await using({ journal: fresh() }, async (client) => {
      const calls = Array.from({ length: 8 }, () => client.send({ name: "a", url, json: {} }));
      assert.equal((await Promise.all(calls)).length, 8);
      await assert.rejects(
        Promise.all([client.send({ name: "b", url, json: 1 }), client.send({ name: "b", url, json: 2 })]),
        hapaxOnce.NameReusedError,
      );
    });
    assert.equal(requests.length, 2);
  }));

test("a torn last line is dropped, and damage before it is refused", () =>
  serving([{ status: 201 }], async (url, requests) => {
    const journal = fresh();
    await using({ journal }, (client) => client.send({ name: "a", url, json: {} }));
    const whole = await readFile(journal, "utf8");
    for (const torn of ['0123456789abcdef {"event":"begun","na', "\0".repeat(100), "garbage without an end", "\n"]) {
      await appendFile(journal, torn);
      assert.equal((await using({ journal }, (client) => client.send({ name: "a", url, json: {} }))).recorded, true);
      assert.equal(await readFile(journal, "utf8"), whole, JSON.stringify(torn));
    }
    await writeFile(journal, whole.replace("begun", "ended"));
    await assert.rejects(
      using({ journal }, (client) => client.resume()),
      hapaxOnce.JournalError,
    );
    assert.equal(requests.length, 1);
  }));

test("what cannot be written down is not sent", () =>
  serving([{ status: 201 }], async (url, requests) => {
    const journal = join(folder, "no-such-folder", "calls.journal");
    await assert.rejects(new Client({ journal }).send({ name: "a", url, json: {} }), hapaxOnce.JournalError);
    for (const call of [
      { name: "a" },
      { name: "", journal: fresh() },
      { json: "x".repeat(1 << 20) },
      { headers: { "Idempotency-Key": "k" } },
      { url: "nowhere" },
      { url: "ftp://127.0.0.1/" },
    ]) {
      const { journal, ...rest } = call;
      await assert.rejects(new Client({ journal }).send({ url, json: {}, ...rest }), hapaxOnce.InvalidCallError);
    }
    assert.equal(requests.length, 0);
  }));

test("a purge leaves what is pending, unknown or young", () =>
  serving([{ status: 201 }, () => undefined, { status: 201 }], async (url) => {
    const journal = fresh();
    await using({ journal }, async (client) => {
      await client.send({ name: "done", url, json: {} });
      await assert.rejects(
        client.send({ name: "doubtful", url, json: {}, deadlineMs: 200 }),
        hapaxOnce.CallUnknownError,
      );
      await client.purge();
      assert.match(await readFile(journal, "utf8"), /"done"/);
      await sleep(5);
      await client.purge(1);
      const left = await readFile(journal, "utf8");
      assert.deepEqual([left.includes('"name":"done"'), left.includes('"name":"doubtful"')], [false, true]);
      await client.send({ name: "later", url, json: {} });
    });
    assert.equal((await using({ journal }, (client) => client.send({ name: "later", url, json: {} }))).recorded, true);
  }));

const worker = (journal, url) =>
  spawn(process.execPath, [fileURLToPath(new URL("client-worker.mjs", import.meta.url)), journal, url], {
    stdio: ["ignore", "pipe", "inherit"],
  });

/** The payments API, which says when a request has come. */
async function payments(work) {
  const protect = idempotency(hapax(world.pool), { tenant: () => "shop" });
  const arrivals = [];
  let arrived;
  const first = new Promise((resolve) => (arrived = resolve));
  const app = express();
  const handler = async (request, response, tx) => {
    arrived();
    const { status, value } = await pay(tx, request.body);
    response.status(status).json(value);
  };
  app.use((request, _response, next) => (arrivals.push(request.headers), next()));
  app.post("/", protect(handler));
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    await work(`http://127.0.0.1:${server.address().port}/`, arrivals, first);
  } finally {
    server.close().closeAllConnections();
  }
}

test("a process that is killed while it sends is finished by the next one, with the same key and one effect", () =>
  payments(async (url, arrivals, first) => {
    const journal = fresh();
    const killed = worker(journal, url);
    await first;
    await assert.rejects(
      using({ journal }, (client) => client.resume()),
      hapaxOnce.JournalHeldError,
      "while the first one lives",
    );
    killed.kill("SIGKILL");
    await once(killed, "exit");
    const [stopped] = await using({ journal, headers: {} }, (client) => client.resume());
    assert.deepEqual([stopped?.name, stopped?.conclusion], ["charge-order-42", "done"]);
    assert.deepEqual([stopped.answer.status, stopped.answer.body.toString()], [201, '{"paid":"charged"}']);
    assert.equal(new Set(arrivals.map((headers) => headers["idempotency-key"])).size, 1);
    assert.ok(arrivals.length >= 2, "it was sent again");
    assert.equal(await world.effects("charged"), 1);
    const [next] = await Promise.all([once(worker(journal, url), "exit")]);
    assert.deepEqual(next, [0, null], "the next process hears what is recorded");
    assert.equal(await world.effects("charged"), 1);
  }));

test("what was begun with credentials of its own is not resumed without them", () =>
  serving([silence, { status: 201 }], async (url, requests) => {
    const journal = fresh();
    const call = { name: "a", url, json: {}, headers: { authorization: "Bearer sk_call" } };
    // Begun and not ended, as if the process had died.
    await using({ journal }, (client) => client.send(call));
    const lines = (await readFile(journal, "utf8")).split("\n");
    await writeFile(journal, `${lines[0]}\n`);
    const [missing] = await using({ journal }, (client) => client.resume());
    assert.ok(missing.error instanceof hapaxOnce.CredentialsMissingError);
    const sent = requests.length;
    const [resumed] = await using({ journal, headers: { authorization: "Bearer sk_client" } }, (client) =>
      client.resume(),
    );
    assert.deepEqual([resumed.conclusion, requests.length], ["done", sent + 1]);
    assert.equal(keys(requests).length, 1);
  }));

test("a lock of somebody who is silent for too long is taken over, and that one writes nothing more", () =>
  serving([{ status: 201 }], async (url, requests) => {
    const journal = fresh();
    const silent = new Client({ journal });
    await silent.send({ name: "a", url, json: {} });
    const { utimes } = await import("node:fs/promises");
    await utimes(`${journal}.lock`, new Date(0), new Date(0));
    await using({ journal }, async (client) => {
      assert.equal((await client.send({ name: "a", url, json: {} })).recorded, true);
      await assert.rejects(silent.send({ name: "b", url, json: {} }), hapaxOnce.JournalError);
    });
    await silent.close();
    assert.equal(requests.length, 1);
  }));
