import { once as event } from "node:events";

import { serve } from "@hono/node-server";
import { Hono } from "hono";

import { idempotency } from "hapax-once/hono";

import { check, pay } from "./payments.mjs";
import { database } from "./world.mjs";

check("hono", await database(), async (hapax, options) => {
  const app = new Hono();
  const once = idempotency(hapax, options);
  const handler = async (context, tx) => {
    const { status, headers, value } = await pay(tx, await context.req.json());
    return context.json(value, status, headers);
  };
  app.post("/payments", once(handler));
  app.post("/notes", once(handler, { ignore: ["/sent_at"] }));
  app.get(
    "/payments",
    once(async (context, tx) => context.json({ payments: (await tx.query("SELECT FROM effects")).rowCount })),
  );
  app.onError((error, context) => context.text(error.message, 500));
  const server = serve({ fetch: app.fetch, hostname: "127.0.0.1", port: 0 });
  if (!server.listening) await event(server, "listening");
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () => new Promise((resolve) => server.close(resolve).closeAllConnections()),
  };
});
