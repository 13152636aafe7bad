import assert from "node:assert/strict";
import { test } from "node:test";

import Fastify from "fastify";

import { hapax } from "hapax-once/pg";
import { idempotency } from "hapax-once/fastify";

import { check, pay } from "./payments.mjs";
import { database } from "./world.mjs";

const world = await database();

async function listening(app) {
  await app.listen({ host: "127.0.0.1", port: 0 });
  return { url: `http://127.0.0.1:${app.server.address().port}`, stop: () => app.close() };
}

function payments(answers) {
  return async (hapax, options) => {
    const app = Fastify({ forceCloseConnections: true });
    const idempotent = idempotency(hapax, options);
    await app.register(idempotent);
    const handler = answers(idempotent);
    app.post("/payments", { config: { once: true } }, handler);
    app.post("/notes", { config: { once: { ignore: ["/sent_at"] } } }, handler);
    app.get("/payments", { config: { once: true } }, async (request) => ({
      payments: (await idempotent.tx(request).query("SELECT FROM effects")).rowCount,
    }));
    return await listening(app);
  };
}

const returning = (idempotent) => async (request, reply) => {
  const { status, headers, value } = await pay(idempotent.tx(request), request.body);
  reply.code(status).headers(headers);
  return value;
};

const sending = (idempotent) => (request, reply) => {
  pay(idempotent.tx(request), request.body).then(
    ({ status, headers, value }) => reply.code(status).headers(headers).send(value),
    (error) => reply.send(error),
  );
};

check("fastify with handlers that return", world, payments(returning));
check("fastify with handlers that send", world, payments(sending));

test("fastify: answers are serialized by the schema of the route, and text and bytes are as they are", async () => {
  const app = Fastify();
  const idempotent = idempotency(hapax(world.pool), { tenant: () => "shop" });
  await app.register(idempotent);
  const schema = { response: { 200: { type: "object", properties: { shown: { type: "string" } } } } };
  app.post("/schema", { config: { once: true }, schema }, async () => ({ shown: "yes", hidden: "no" }));
  app.post("/text", { config: { once: true } }, async () => "text");
  app.post("/bytes", { config: { once: true } }, async () => Buffer.from([0xff, 0xfe]));
  app.post("/nothing", { config: { once: true } }, async (_request, reply) => reply.code(204).send());
  app.post("/plain", async () => "plain");
  const expected = { "/schema": '{"shown":"yes"}', "/text": "text", "/bytes": "\u{fffd}\u{fffd}", "/nothing": "" };
  for (const [url, body] of Object.entries(expected)) {
    const asked = { method: "POST", url, headers: { "idempotency-key": "k" } };
    const [first, second] = [await app.inject(asked), await app.inject(asked)];
    assert.deepEqual(
      [first.payload, second.payload, second.headers["content-type"]],
      [body, body, first.headers["content-type"]],
      url,
    );
    assert.equal(second.headers["idempotent-replayed"], "true");
  }
  const plain = await app.inject({ method: "POST", url: "/plain" });
  assert.deepEqual([plain.statusCode, plain.payload], [200, "plain"], "not protected");
  await app.close();
});
