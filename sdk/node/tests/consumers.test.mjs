// Consumers on the real brokers: each message is acted on once, however often it is delivered.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";

import amqp from "amqplib";
import {
  CreateQueueCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  SendMessageCommand,
  SQSClient,
} from "@aws-sdk/client-sqs";
import { Kafka, logLevel } from "kafkajs";
import pg from "pg";

import { Consumer, FailedForGood, NoMessageIdError } from "hapax-once";
import { onMessage } from "hapax-once/amqplib";
import { eachMessage } from "hapax-once/kafkajs";
import { handle } from "hapax-once/nats";
import { hapax } from "hapax-once/pg";
import { poll } from "hapax-once/sqs";

import { database, service, unless } from "./world.mjs";

const world = await database();
const PATIENCE_MS = 20_000;

const message = (id, content = "hello") => ({
  brokerId: id,
  content: Buffer.from(content),
  headers: {},
  source: "test",
});

/** A consumer that writes what messages say, and what it was told of failures. */
function mailer(name, options = {}) {
  const errors = [];
  const act = async (tx, { content }) => {
    const text = content.toString();
    await tx.query("INSERT INTO effects (name) VALUES ($1)", [`${name} ${text}`]);
    if (text.startsWith("poison")) throw new Error("no such address");
    if (text.startsWith("failed")) throw new FailedForGood("no address");
  };
  const quick = { attemptsMax: 3, pauseMs: 20, pauseMsMax: 40, onError: (error) => errors.push(error) };
  return { consumer: new Consumer(hapax(options.pool ?? world.pool), name, act, { ...quick, ...options }), errors };
}

const letters = (id) => world.number("SELECT count(*) FROM hapax.inbox_dead_readable WHERE message_id = $1", [id]);

async function until(holds, what) {
  const ends = Date.now() + PATIENCE_MS;
  while (!(await holds())) {
    assert.ok(Date.now() < ends, `not in time: ${what}`);
    await sleep(20);
  }
}

test("what cannot be counted now comes again, and costs no attempt", async () => {
  const nowhere = new pg.Pool({ connectionString: "postgres://postgres@127.0.0.1:1/nowhere" });
  const away = mailer("mailer", { pool: nowhere });
  assert.equal((await away.consumer.deliver(message("away"))).word, "again");
  await nowhere.end();
  // Another delivery is at it.
  const { consumer } = mailer("mailer");
  const client = await world.pool.connect();
  await client.query("BEGIN");
  await client.query("SELECT hapax.first_delivery('mailer', 'held', 'hello')");
  const { word, acted } = await consumer.deliver(message("held"));
  assert.deepEqual({ word, acted }, { word: "again", acted: false });
  await client.query("ROLLBACK");
  client.release();
  // A conflict.
  let attempts = 0;
  const conflicting = new Consumer(
    hapax(world.pool),
    "mailer",
    async (tx) => {
      if (attempts++ === 0) await tx.query("DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '40001'; END $$");
    },
    { attemptsMax: 1, onError: () => undefined },
  );
  assert.equal((await conflicting.deliver(message("conflict"))).word, "again");
  assert.deepEqual(await conflicting.deliver(message("conflict")), { word: "done", acted: true });
  assert.equal(await world.number("SELECT count(*) FROM hapax.inbox_attempts"), 0);
});

test("pauses grow with every failed attempt", async () => {
  const { consumer } = mailer("pauses", { attemptsMax: 10, pauseMs: 1000, pauseMsMax: 3000 });
  for (const [least, most] of [
    [500, 1000],
    [1000, 2000],
    [1500, 3000],
    [1500, 3000],
  ]) {
    const { pauseMs } = await consumer.deliver(message("slow", "poison"));
    assert.ok(pauseMs >= least && pauseMs <= most, `${pauseMs}`);
  }
});

test("a message without a usable id is an error, unless the caller names one", async () => {
  const { consumer, errors } = mailer("nameless");
  for (const id of [undefined, "", "caf\u{e9}", "x".repeat(256)])
    await assert.rejects(consumer.deliver(message(id)), NoMessageIdError);
  assert.equal((await consumer.receive(message(undefined))).word, "again");
  assert.ok(errors.at(-1) instanceof NoMessageIdError);
  const named = mailer("nameless", { messageId: ({ content }) => JSON.parse(content).id });
  assert.deepEqual(await named.consumer.deliver(message(undefined, '{"id": "m-1"}')), { word: "done", acted: true });
  assert.deepEqual(await named.consumer.deliver(message(undefined, '{"id": "m-1"}')), { word: "done", acted: false });
});

/**
 * Holds a broker against what all of them do. `start(consumer)` consumes; `send(id, content)` sends; `isEmpty()` says whether the broker has
 * nothing left.
 */
async function check(name, { start, send, isEmpty }) {
  const [mail, twice, poison, failed] = ["mail", "twice", "poison", "failed"].map(
    (about) => `${about}-${randomUUID()}`,
  );
  const { consumer, errors } = mailer(name);
  const stop = await start(consumer);
  try {
    for (const id of [mail, twice, twice, poison, failed]) await send(id, id);
    await until(async () => (await letters(poison)) === 1, "a dead letter");
    await until(
      async () =>
        (await world.number("SELECT count(*) FROM hapax.inbox_readable WHERE message_id = ANY($1)", [
          [mail, twice, poison, failed],
        ])) === 4,
      "all acted on",
    );
    await until(isEmpty, "the broker has nothing left");
  } finally {
    await stop();
  }
  for (const [id, times] of [
    [mail, 1],
    [twice, 1],
    [poison, 0],
    [failed, 0],
  ])
    assert.equal(await world.effects(`${name} ${id}`), times, id);
  assert.equal(errors.filter(({ message }) => message === "no such address").length, 3, "each attempt is told of");
  assert.equal(await letters(failed), 0);
}

test("kafka, with kafkajs", unless("kafka"), async () => {
  const kafka = new Kafka({ brokers: [service("kafka").replace("kafka://", "")], logLevel: logLevel.NOTHING });
  const [topic, groupId] = [`mails-${randomUUID()}`, `group-${randomUUID()}`];
  const admin = kafka.admin();
  const producer = kafka.producer();
  await Promise.all([admin.connect(), producer.connect()]);
  await admin.createTopics({ topics: [{ topic, numPartitions: 1 }], waitForLeaders: true });
  const offsets = async () => {
    const [{ offset: end }] = await admin.fetchTopicOffsets(topic);
    const [{ partitions }] = await admin.fetchOffsets({ groupId, topics: [topic] });
    return [partitions[0].offset, end];
  };
  await check("kafkajs", {
    async start(consumer) {
      const kafkaConsumer = kafka.consumer({ groupId });
      await kafkaConsumer.connect();
      await kafkaConsumer.subscribe({ topic, fromBeginning: true });
      await kafkaConsumer.run({ eachMessage: eachMessage(consumer) });
      return () => kafkaConsumer.disconnect();
    },
    send: (id, value) => producer.send({ topic, messages: [{ value, headers: { ce_id: id } }] }),
    async isEmpty() {
      const [committed, end] = await offsets();
      return committed === end;
    },
  });
  await admin.deleteTopics({ topics: [topic] });
  await Promise.all([admin.disconnect(), producer.disconnect()]);
});

const natsPackages = {
  async nats() {
    const { connect, headers } = await import("nats");
    const connection = await connect({ servers: service("nats") });
    return { connection, headers, manager: await connection.jetstreamManager(), jetstream: connection.jetstream() };
  },
  async "@nats-io/jetstream"() {
    const { connect, headers } = await import("@nats-io/transport-node");
    const { jetstream, jetstreamManager } = await import("@nats-io/jetstream");
    const connection = await connect({ servers: service("nats") });
    return { connection, headers, manager: await jetstreamManager(connection), jetstream: jetstream(connection) };
  },
};

for (const [name, open] of Object.entries(natsPackages)) {
  test(`NATS JetStream, with ${name}`, unless("nats"), async () => {
    const { connection, headers, manager, jetstream } = await open();
    const stream = `MAILS-${randomUUID()}`;
    await manager.streams.add({ name: stream, subjects: [`${stream}.>`] });
    await manager.consumers.add(stream, { durable_name: "mailer", ack_policy: "explicit" });
    await check(name, {
      async start(consumer) {
        const messages = await (await jetstream.consumers.get(stream, "mailer")).consume();
        const consuming = (async () => {
          for await (const message of messages) await handle(consumer, message);
        })();
        return async () => {
          await messages.close();
          await consuming;
        };
      },
      async send(id, text) {
        const named = headers();
        named.set("ce-id", id);
        await jetstream.publish(`${stream}.sent`, Buffer.from(text), { headers: named });
      },
      async isEmpty() {
        const { num_ack_pending, num_pending } = await manager.consumers.info(stream, "mailer");
        return num_ack_pending + num_pending === 0;
      },
    });
    await manager.streams.delete(stream);
    await connection.close();
  });
}

test("RabbitMQ, with amqplib", unless("rabbitmq"), async () => {
  const connection = await amqp.connect(service("rabbitmq"));
  const channel = await connection.createConfirmChannel();
  const { queue } = await channel.assertQueue(`mails-${randomUUID()}`, { durable: true });
  await check("amqplib", {
    async start(consumer) {
      const consuming = await connection.createChannel();
      await consuming.prefetch(4);
      await consuming.consume(queue, onMessage(consumer, consuming));
      return () => consuming.close();
    },
    async send(id, text) {
      channel.sendToQueue(queue, Buffer.from(text), { messageId: id, persistent: true });
      await channel.waitForConfirms();
    },
    async isEmpty() {
      // What is delivered and not acknowledged is counted when its channel has closed.
      return (await channel.checkQueue(queue)).messageCount === 0;
    },
  });
  assert.equal((await channel.checkQueue(queue)).messageCount, 0, "all are acknowledged");
  await channel.deleteQueue(queue);
  await connection.close();
});

test("SQS, with @aws-sdk/client-sqs", unless("sqs"), async () => {
  const endpoint = service("sqs");
  const client = new SQSClient({
    endpoint,
    region: "elasticmq",
    credentials: { accessKeyId: "x", secretAccessKey: "x" },
  });
  const attributes = { FifoQueue: "true", ContentBasedDeduplication: "false" };
  const { QueueUrl: queueUrl } = await client.send(
    new CreateQueueCommand({ QueueName: `mails-${randomUUID()}.fifo`, Attributes: attributes }),
  );
  await check("sqs", {
    async start(consumer) {
      const stopping = new AbortController();
      const polling = poll(consumer, client, { queueUrl, signal: stopping.signal });
      return async () => {
        stopping.abort();
        await polling;
      };
    },
    async send(id, text) {
      const named = { "ce-id": { DataType: "String", StringValue: id } };
      // One group for all: what is behind the poison waits for it.
      const sent = {
        QueueUrl: queueUrl,
        MessageBody: text,
        MessageAttributes: named,
        MessageGroupId: "mails",
        MessageDeduplicationId: randomUUID(),
      };
      await client.send(new SendMessageCommand(sent));
    },
    async isEmpty() {
      const names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"];
      const { Attributes } = await client.send(
        new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: names }),
      );
      return names.every((name) => Attributes[name] === "0");
    },
  });
  await client.send(new DeleteQueueCommand({ QueueUrl: queueUrl }));
  client.destroy();
});
