import type { Channel, ConsumeMessage } from "amqplib";

import type { Consumer, Message } from "./consumer.js";

/**
 * For `channel.consume` of amqplib: acknowledged when it is done.
 *
 * RabbitMQ puts a message back at once or never, so one for later is held here, unacknowledged, until its time has come.
 */
export function onMessage<Tx>(
  consumer: Consumer<Tx>,
  channel: Channel,
): (message: ConsumeMessage | null) => Promise<void> {
  let isOpen = true;
  channel.once("close", () => (isOpen = false));
  return async (message) => {
    // The queue is gone.
    if (message === null) return;
    const outcome = await consumer.receive(read(message));
    const settle = () => {
      // What a channel has not settled when it closes comes again.
      if (!isOpen) return;
      if (outcome.word === "done") channel.ack(message);
      else channel.nack(message, false, true);
    };
    if (outcome.word === "done") settle();
    else setTimeout(settle, outcome.pauseMs);
  };
}

function read({ content, properties, fields }: ConsumeMessage): Message {
  const texts = Object.entries(properties.headers ?? {}).filter(
    ([, value]) => typeof value === "string" || typeof value === "number",
  );
  const headers = Object.fromEntries(texts.map(([name, value]) => [name.toLowerCase(), String(value)]));
  const id: unknown = properties.messageId;
  return {
    content,
    headers: typeof id === "string" ? { message_id: id, ...headers } : headers,
    key: headers["ce-subject"],
    source: fields.routingKey,
  };
}
