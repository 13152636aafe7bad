import { setTimeout as sleep } from "node:timers/promises";

import type { EachMessageHandler, EachMessagePayload } from "kafkajs";

import type { Consumer, Message } from "./consumer.js";

const HEARTBEAT_MS = 1000;

/**
 * For `run({ eachMessage })` of kafkajs: the offset of a message goes on when it is done.
 *
 * One that has to come again is held back here, and what is behind it in its partition with it.
 */
export function eachMessage<Tx>(consumer: Consumer<Tx>): EachMessageHandler {
  return async (payload) => {
    const { heartbeat } = payload;
    // The broker takes a member that says nothing for dead. Whoever lost its partition hears of it after the message.
    const beating = setInterval(() => void heartbeat().catch(() => undefined), HEARTBEAT_MS);
    try {
      for (;;) {
        const outcome = await consumer.receive(read(payload));
        if (outcome.word === "done") return;
        await heartbeat();
        await sleep(outcome.pauseMs);
      }
    } finally {
      clearInterval(beating);
    }
  };
}

function read({ topic, partition, message }: EachMessagePayload): Message {
  const headers = Object.entries(message.headers ?? {}).map(([name, value]) => [
    name.toLowerCase(),
    String([value].flat()[0] ?? ""),
  ]);
  return {
    brokerId: `${topic}/${partition}/${message.offset}`,
    content: message.value ?? Buffer.alloc(0),
    headers: Object.fromEntries(headers) as Record<string, string>,
    key: message.key?.toString(),
    source: topic,
  };
}
