// What a user of each framework, of a consumer and of the client writes, as far as the compiler can tell.

import { SQSClient } from "@aws-sdk/client-sqs";
import amqp from "amqplib";
import express, { type Request } from "express";
import Fastify, { type FastifyRequest } from "fastify";
import { Hono } from "hono";
import { hc } from "hono/client";
import { Kafka } from "kafkajs";
import { connect } from "nats";
import pg from "pg";

import {
  CallRefusedError,
  CallUnknownError,
  Client,
  Consumer,
  FailedForGood,
  HapaxError,
  MismatchError,
  verifyWebhook,
} from "hapax-once";
import { onMessage } from "hapax-once/amqplib";
import { idempotency as onExpress, keepRawBody } from "hapax-once/express";
import { idempotency as onFastify } from "hapax-once/fastify";
import { idempotency as onHono } from "hapax-once/hono";
import { eachMessage } from "hapax-once/kafkajs";
import { handle } from "hapax-once/nats";
import { OnceInterceptor } from "hapax-once/nest";
import { hapax } from "hapax-once/pg";
import { poll } from "hapax-once/sqs";

const shop = hapax(new pg.Pool());

function express5(): void {
  const once = onExpress(shop, { tenant: (request: Request) => request.get("x-who") ?? "nobody", waitMs: 100 });
  const app = express().use(express.json({ verify: keepRawBody }));
  app.post(
    "/payments",
    once(
      async (request, response, tx) => {
        await tx.query("SELECT $1", [request.body]);
        response.status(201).json({ paid: true });
      },
      { ignore: ["/sent_at"] },
    ),
  );
  // @ts-expect-error There is no default tenant.
  onExpress(shop, {});
}

async function fastify(): Promise<void> {
  const app = Fastify();
  const idempotent = onFastify(shop, { tenant: (request: FastifyRequest) => request.ip });
  await app.register(idempotent);
  app.post<{ Body: { cents: number } }>(
    "/payments",
    { config: { once: { ignore: ["/sent_at"] } } },
    async (request, reply) => {
      await idempotent.tx(request).query("SELECT $1", [request.body.cents]);
      return reply.code(201).send({ paid: true });
    },
  );
}

async function hono(): Promise<void> {
  const once = onHono(shop, { tenant: (context) => context.req.header("x-who") ?? "nobody" });
  const app = new Hono().post(
    "/payments/:order",
    once(async (context, tx) => {
      await tx.query("SELECT $1", [context.req.param("order")]);
      return context.json({ paid: true }, 201);
    }),
  );
  // The published types of the API stay as they were.
  const answer = await hc<typeof app>("http://127.0.0.1").payments[":order"].$post({ param: { order: "order-17" } });
  const { paid } = await answer.json();
  paid satisfies boolean;
}

function nest(): OnceInterceptor<pg.PoolClient, Request> {
  return new OnceInterceptor(shop, { tenant: (request: Request) => request.ip ?? "nobody" });
}

async function consumers(): Promise<void> {
  const mailer = new Consumer(
    shop,
    "mailer",
    async (tx, message) => {
      if (message.content.length === 0) throw new FailedForGood("there is no address");
      await tx.query("INSERT INTO mails VALUES ($1)", [message.content.toString()]);
    },
    { attemptsMax: 3 },
  );
  await new Kafka({ brokers: [] }).consumer({ groupId: "mailer" }).run({ eachMessage: eachMessage(mailer) });
  const channel = await (await amqp.connect("amqp://127.0.0.1")).createChannel();
  await channel.consume("mails", onMessage(mailer, channel));
  for await (const message of await (await (await connect()).jetstream().consumers.get("MAILS", "mailer")).consume())
    await handle(mailer, message);
  await poll(mailer, new SQSClient({}), { queueUrl: "http://127.0.0.1/mails" });
}

async function client(): Promise<void> {
  const client = new Client({ journal: "calls.journal", headers: { authorization: "Bearer sk_test" } });
  for (const { name, conclusion } of await client.resume()) console.log(name, conclusion);
  try {
    const answer = await client.send({
      name: "charge-order-42",
      url: "http://127.0.0.1/charges",
      json: { cents: 100 },
    });
    console.log(answer.status, answer.body.toString(), answer.attempts);
  } catch (error) {
    if (error instanceof CallRefusedError) console.log(error.answer.status, error.conclusion satisfies "refused");
    if (error instanceof CallUnknownError) console.log(error.unfinished.key);
    if (error instanceof HapaxError && error.kind === "mismatch") console.log((error as MismatchError).differs);
  }
  verifyWebhook("whsec_…", new Headers(), "{}").id satisfies string;
}

export { client, consumers, express5, fastify, hono, nest };
