import { bytes } from "../answer.js";
import type { Consumer, Message } from "./consumer.js";

/** A message of JetStream, of the package `nats` or `@nats-io/jetstream`. */
export interface JetStreamMessage {
  readonly subject: string;
  readonly data: Uint8Array;
  readonly headers?: { keys(): Iterable<string>; get(name: string): string } | undefined;
  readonly info: { readonly stream: string; readonly streamSequence: number };
  ackAck(): Promise<boolean>;
  nak(delayMs?: number): void;
  working(): void;
}

/** Less than the shortest `ack_wait` that makes sense. */
const WORKING_MS = 5000;

/** Acts on a message of JetStream: acknowledged when it is done, put back with a delay when it has to come again. */
export async function handle<Tx>(consumer: Consumer<Tx>, message: JetStreamMessage): Promise<void> {
  const working = setInterval(() => message.working(), WORKING_MS);
  try {
    const outcome = await consumer.receive(read(message));
    if (outcome.word === "done") await message.ackAck();
    else message.nak(Math.ceil(outcome.pauseMs));
  } finally {
    clearInterval(working);
  }
}

function read({ subject, data, headers, info }: JetStreamMessage): Message {
  const names = headers === undefined ? [] : [...headers.keys()];
  const read = names.map((name): [string, string] => [name.toLowerCase(), value(name, headers?.get(name) ?? "")]);
  const own = Object.fromEntries(read);
  return {
    brokerId: `${info.stream}:${info.streamSequence}`,
    content: bytes(data),
    headers: own,
    key: own["ce-subject"],
    source: subject,
  };
}

/** Attributes of CloudEvents are percent-encoded in NATS. */
function value(name: string, text: string): string {
  if (!name.toLowerCase().startsWith("ce-")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
