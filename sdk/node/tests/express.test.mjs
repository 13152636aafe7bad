import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";

import express from "express";

import { hapax } from "hapax-once/pg";
import { idempotency, keepRawBody } from "hapax-once/express";

import { check, pay } from "./payments.mjs";
import { database } from "./world.mjs";

const world = await database();

async function listening(app) {
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () => new Promise((resolve) => server.close(resolve).closeAllConnections()),
  };
}

const handler = async (request, response, tx) => {
  const { status, headers, value } = await pay(tx, request.body);
  response.status(status).set(headers).json(value);
};

function payments(parser) {
  return (hapax, options) => {
    const app = express();
    const once = idempotency(hapax, options);
    if (parser !== undefined) app.use(parser);
    app.post("/payments", once(handler));
    app.post("/notes", once(handler, { ignore: ["/sent_at"] }));
    const count = async (_request, response, tx) =>
      response.json({ payments: (await tx.query("SELECT FROM effects")).rowCount });
    app.get("/payments", once(count));
    app.use((error, _request, response, _next) => response.status(error.status ?? 500).end(error.message));
    return listening(app);
  };
}

check("express with its parser", world, payments(express.json({ verify: keepRawBody })));
check("express without a parser", world, payments());

async function asked(app, body, headers = {}) {
  const { url, stop } = await listening(app);
  try {
    const response = await fetch(url, { method: "POST", body, headers: { "idempotency-key": "k", ...headers } });
    return { status: response.status, headers: response.headers, text: await response.text() };
  } finally {
    await stop();
  }
}

const protect = (options) => idempotency(hapax(world.pool), { tenant: () => "shop", ...options });

test("express: a body whose bytes are gone is an error of whoever set it up, and says so", async () => {
  const app = express().use(express.json()).post("/", protect()(handler));
  app.use((error, _request, response, _next) => response.status(500).end(`${error.kind}: ${error.message}`));
  const heard = await asked(app, "{}", { "content-type": "application/json" });
  assert.match(heard.text, /^invalid: .*express\.json\(\{ verify: keepRawBody \}\)/);
});

test("express: a body that is too large, or no JSON, is refused before anything is begun", async () => {
  const app = express().post("/", protect({ bodyBytesMax: 100 })(handler));
  app.use((error, _request, response, _next) => response.status(error.status).end("not JSON"));
  const json = { "content-type": "application/json" };
  const large = await asked(app, "x".repeat(101), json);
  assert.deepEqual([large.status, large.headers.get("hapax-refusal")], [413, "body-too-large"]);
  assert.deepEqual((await asked(app, "{", json)).status, 400);
  assert.equal(await world.number("SELECT count(*) FROM hapax.operations WHERE key = 'k'"), 0);
});

test("express: what a handler writes in pieces, with a head of its own, is sent as it is", async () => {
  const app = express().post(
    "/",
    protect()((_request, response) => {
      response.writeHead(201, { "content-type": "text/plain", "x-pieces": "2" });
      response.write("th");
      response.end("é", "utf8");
    }),
  );
  for (const replayed of [null, "true"]) {
    const heard = await asked(app, "", { "idempotency-key": "pieces" });
    assert.deepEqual(
      [heard.status, heard.text, heard.headers.get("x-pieces"), heard.headers.get("idempotent-replayed")],
      [201, "thé", "2", replayed],
    );
  }
});

test("express: a path that cannot name an operation is refused", async () => {
  const { url, stop } = await listening(express().post("/*path", protect()(handler)));
  const response = await fetch(`${url}/${"p".repeat(1100)}`, { method: "POST", headers: { "idempotency-key": "k" } });
  assert.equal(response.headers.get("hapax-refusal"), "scope-unusable");
  await stop();
});
