import { bytes } from "./answer.js";
import type { Value } from "./database.js";
import { text, valued } from "./operation.js";

/** What is published if the transaction commits. */
export interface Event {
  readonly topic: string;
  /** Events of one topic and key are published in the order of their commits. */
  readonly key: string;
  /** A text or bytes as they are; any other value as JSON. */
  readonly payload: string | Uint8Array | object;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** `application/json` if it is not said. */
  readonly contentType?: string | undefined;
  /** A UUID; a random one if it is not said. */
  readonly id?: string | undefined;
}

/** The arguments of hapax.emit. */
export function emittedWith(event: Event, id: string): readonly Value[] {
  const { topic, key, payload, headers = {}, contentType = "application/json" } = event;
  const said = typeof payload === "object" && !(payload instanceof Uint8Array) ? JSON.stringify(payload) : payload;
  return [
    text("topic of an event", topic),
    text("key of an event", key),
    bytes(valued("payload of an event", said)),
    JSON.stringify(headers),
    text("content type of an event", contentType),
    text("id of an event", id),
  ];
}
