import { bytes } from "./answer.js";
import type { Value } from "./database.js";
import { interval, KEY_LENGTH_MAX, named, text, valued, WAIT_MS } from "./operation.js";

/** A message that was delivered to a consumer. */
export interface Delivery {
  readonly consumer: string;
  readonly messageId: string;
  /** What a message with this id has to say each time. */
  readonly content?: string | Uint8Array | undefined;
  /** `messages` if it is not said. */
  readonly tenant?: string | undefined;
  /** Longer than the broker can deliver again: 7 days if it is not said. */
  readonly retentionMs?: number | undefined;
  /** How long to wait while another delivery is worked on: 2 s if it is not said. */
  readonly waitMs?: number | undefined;
}

/** Why a delivery failed, and what a dead letter is to hold. */
export interface DeliveryFailure {
  readonly reason: string;
  /** The last of so many attempts makes a dead letter: 10 if it is not said. */
  readonly attemptsMax?: number | undefined;
  /** Whether no attempt is worth while: it is over, without a dead letter. */
  readonly forGood?: boolean | undefined;
  readonly key?: string | undefined;
  readonly source?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** What came of it. */
export interface FailedDelivery {
  /** How many attempts have failed. */
  readonly attempts: number;
  /** Whether it is no longer tried. */
  readonly isOver: boolean;
}

const RETENTION_MS = 7 * 24 * 60 * 60 * 1000;
const CONSUMER_LENGTH_MAX = 1024;
export const ATTEMPTS_MAX = 10;

/** The arguments of hapax.first_delivery. */
export function deliveredWith(delivery: Delivery): readonly Value[] {
  const { tenant, retention, wait } = limits(delivery);
  return [...message(delivery), tenant, retention, wait];
}

/** The arguments of hapax.fail_delivery. */
export function failedWith(delivery: Delivery, failure: DeliveryFailure): readonly Value[] {
  const { tenant, retention, wait } = limits(delivery);
  return [
    ...message(delivery),
    // PostgreSQL has no text with this character in it.
    text("reason of a failure", failure.reason).replaceAll("\0", ""),
    String(failure.attemptsMax ?? ATTEMPTS_MAX),
    String(failure.forGood ?? false),
    failure.key ?? null,
    failure.source ?? "",
    JSON.stringify(failure.headers ?? {}),
    tenant,
    retention,
    wait,
  ];
}

function message({ consumer, messageId, content = "" }: Delivery): readonly Value[] {
  return [
    named("name of a consumer", consumer, CONSUMER_LENGTH_MAX),
    named("id of a message", messageId, KEY_LENGTH_MAX),
    bytes(valued("content of a message", content)),
  ];
}

function limits({ tenant = "messages", retentionMs = RETENTION_MS, waitMs = WAIT_MS }: Delivery) {
  return {
    tenant: text("tenant", tenant),
    retention: interval("retentionMs", retentionMs),
    wait: interval("waitMs", waitMs),
  };
}
