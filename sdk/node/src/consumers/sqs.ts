import { setTimeout as sleep } from "node:timers/promises";

import {
  ChangeMessageVisibilityCommand,
  DeleteMessageCommand,
  ReceiveMessageCommand,
  type Message as SqsMessage,
  type SQSClient,
} from "@aws-sdk/client-sqs";

import type { Consumer, Message } from "./consumer.js";

export interface SqsOptions {
  readonly queueUrl: string;
  /** Ends the polling, after what was begun is finished. */
  readonly signal?: AbortSignal;
  /** How many messages are taken at once: 10 if it is not said, which is the most. */
  readonly batch?: number;
  /** How long a message is hidden while it is worked on, and as often as need be: 30 s if it is not said. */
  readonly visibilitySeconds?: number;
}

const BATCH = 10;
const POLL_SECONDS = 20;
const VISIBILITY_SECONDS = 30;
const VISIBILITY_SECONDS_MAX = 12 * 60 * 60;
const OUTAGE_PAUSE_MS = 5000;

/** Polls a queue of SQS: a message is deleted when it is done, and hidden for a while when it has to come again. */
export async function poll<Tx>(consumer: Consumer<Tx>, client: SQSClient, options: SqsOptions): Promise<void> {
  const seconds = options.visibilitySeconds ?? VISIBILITY_SECONDS;
  while (options.signal?.aborted !== true) {
    const messages = await received(client, options, seconds);
    const underWay = new Set(messages);
    const hide = async ({ ReceiptHandle }: SqsMessage, seconds: number) => {
      await client.send(
        new ChangeMessageVisibilityCommand({ QueueUrl: options.queueUrl, ReceiptHandle, VisibilityTimeout: seconds }),
      );
    };
    const hiding = setInterval(
      () => underWay.forEach((message) => void hide(message, seconds).catch(() => undefined)),
      seconds * 300,
    );
    const act = async (group: readonly SqsMessage[]) => {
      for (const [at, message] of group.entries()) {
        const outcome = await consumer.receive(read(message, options.queueUrl));
        underWay.delete(message);
        if (outcome.word === "done") {
          await client.send(
            new DeleteMessageCommand({ QueueUrl: options.queueUrl, ReceiptHandle: message.ReceiptHandle }),
          );
          continue;
        }
        // Of a group nothing may overtake what has to come again.
        group.slice(at + 1).forEach((later) => underWay.delete(later));
        const pause = Math.min(Math.ceil(outcome.pauseMs / 1000), VISIBILITY_SECONDS_MAX);
        await Promise.all(group.slice(at).map((one) => hide(one, pause)));
        return;
      }
    };
    // What cannot be told to SQS comes again when nobody hides it any longer.
    await Promise.all(groups(messages).map((group) => act(group).catch((error: Error) => process.emitWarning(error))));
    clearInterval(hiding);
  }
}

/** Messages of a group of a FIFO queue are acted on one after the other, all else side by side. */
function groups(messages: readonly SqsMessage[]): readonly (readonly SqsMessage[])[] {
  const groups = new Map<unknown, SqsMessage[]>();
  for (const message of messages) {
    const group = message.Attributes?.MessageGroupId ?? message;
    groups.set(group, [...(groups.get(group) ?? []), message]);
  }
  return [...groups.values()];
}

async function received(
  client: SQSClient,
  { queueUrl, signal, batch = BATCH }: SqsOptions,
  seconds: number,
): Promise<readonly SqsMessage[]> {
  const asked = {
    QueueUrl: queueUrl,
    MaxNumberOfMessages: batch,
    WaitTimeSeconds: POLL_SECONDS,
    VisibilityTimeout: seconds,
  };
  const names = { MessageAttributeNames: ["All"], MessageSystemAttributeNames: ["All" as const] };
  try {
    const { Messages } = await client.send(
      new ReceiveMessageCommand({ ...asked, ...names }),
      signal === undefined ? {} : { abortSignal: signal },
    );
    return Messages ?? [];
  } catch (error) {
    if (signal?.aborted === true) return [];
    process.emitWarning(error as Error);
    await sleep(OUTAGE_PAUSE_MS, undefined, { signal }).catch(() => undefined);
    return [];
  }
}

/** What a relay of Hapax wrote is read back as it was before. */
function read(
  { MessageId, Body = "", MessageAttributes = {}, Attributes = {} }: SqsMessage,
  queueUrl: string,
): Message {
  const texts = Object.entries(MessageAttributes).map(
    ([name, { StringValue = "" }]) => [name.toLowerCase(), StringValue] as const,
  );
  const {
    "hapax-encoding": encoding,
    "hapax-headers": own = "{}",
    ...headers
  } = Object.fromEntries(texts) as Record<string, string>;
  const content = encoding === "empty" ? Buffer.alloc(0) : Buffer.from(Body, encoding === "base64" ? "base64" : "utf8");
  return {
    brokerId: MessageId,
    content,
    headers: { ...ownHeaders(own), ...headers },
    key: headers["ce-subject"] ?? Attributes.MessageGroupId,
    source: new URL(queueUrl).pathname.split("/").at(-1) ?? queueUrl,
  };
}

function ownHeaders(text: string): Record<string, string> {
  try {
    const own = Object.entries(JSON.parse(text) as object);
    return Object.fromEntries(own.map(([name, value]) => [name.toLowerCase(), String(value)]));
  } catch {
    return {};
  }
}
