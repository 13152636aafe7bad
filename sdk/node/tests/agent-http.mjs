// The payments API of ../../conformance.md, in Express.

import { once } from "node:events";
import { createServer } from "node:http";

import express from "express";

import { idempotency, keepRawBody } from "hapax-once/express";

/** Serves it on a free port, as long as the process lives; which one that is. */
export async function serve({ hapax, run }) {
  const protect = idempotency(hapax, { tenant: (request) => request.get("tenant"), ignore: ["/sent_at"] });
  const app = express().use(express.json({ verify: keepRawBody }));
  app.post(
    "/payments",
    protect(async (request, response, tx) => {
      const { order, cents } = request.body;
      await run(tx, "INSERT INTO effects (name) VALUES ($1)", [order]);
      if (cents === 0) return response.status(402).json({ error: "no money" });
      return response.status(201).cookie("session", "secret").set("x-paid", "yes").json({ paid: order, cents });
    }),
  );
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  server.unref();
  return server.address().port;
}
