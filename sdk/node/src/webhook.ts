import { createHmac, timingSafeEqual } from "node:crypto";

import { bytes } from "./answer.js";

/** A webhook that is genuine. Act on each id once. */
export interface Webhook {
  readonly id: string;
  /** When this attempt was made, by the sender's clock. */
  readonly at: Date;
}

export interface WebhookOptions {
  /** How far the clocks may be apart, transport included: 5 minutes if it is not said. */
  readonly toleranceMs?: number;
  readonly now?: Date;
}

/** Why a webhook is not to be acted on: answer 401. */
export class WebhookError extends Error {
  override readonly name = "WebhookError";

  constructor(
    /** A header is missing or malformed; no signature fits; it was sent too long ago. */
    readonly why: "unsigned" | "forged" | "untimely",
    message: string,
  ) {
    super(message);
  }
}

/** Headers as Node has them, or as fetch has them. */
type ReceivedHeaders =
  Readonly<Record<string, string | readonly string[] | undefined>> | { get(name: string): string | null };

const TOLERANCE_MS = 5 * 60 * 1000;
const SECRET_BYTES_MIN = 24;
const SECRET_BYTES_MAX = 64;
/** Most signatures that are looked at: nobody rotates more secrets than that. */
const SIGNATURES_MAX = 16;

/**
 * Whether a request was sent by somebody who knows one of these secrets, and lately, by the rules of Standard Webhooks.
 *
 * The body has to be the one that was received, byte for byte.
 */
export function verifyWebhook(
  secrets: string | readonly string[],
  headers: ReceivedHeaders,
  body: string | Uint8Array,
  options: WebhookOptions = {},
): Webhook {
  const keys = [secrets].flat().map(secretBytes);
  const id = single(headers, "webhook-id");
  const timestamp = single(headers, "webhook-timestamp");
  const at = new Date(Number(timestamp) * 1000);
  if (!/^[0-9]+$/.test(timestamp) || Number.isNaN(at.getTime())) throw unsigned("webhook-timestamp");
  const signatures = single(headers, "webhook-signature")
    .split(/[ \t\n\f\r]+/)
    .filter((text) => text !== "")
    .slice(0, SIGNATURES_MAX);
  const claimed = signatures.filter((text) => text.startsWith("v1,")).map((text) => base64(text.slice(3)));
  const expected = keys.map((key) =>
    createHmac("sha256", key)
      .update(`${id}.${Number(timestamp)}.`)
      .update(bytes(body))
      .digest(),
  );
  // All are compared, so that the time it takes says nothing.
  const fits = claimed.flatMap((one) =>
    expected.map((other) => one?.length === other.length && timingSafeEqual(one, other)),
  );
  if (!fits.includes(true))
    throw new WebhookError("forged", "no signature fits: it was sent by somebody else, or changed on its way");
  const apartMs = Math.abs((options.now ?? new Date()).getTime() - at.getTime());
  if (apartMs > (options.toleranceMs ?? TOLERANCE_MS)) {
    throw new WebhookError("untimely", `it was sent ${Math.round(apartMs / 1000)} s away from now`);
  }
  return { id, at };
}

function secretBytes(secret: string): Buffer {
  const key = base64(secret.replace(/^whsec_/, ""));
  if (key === undefined || key.length < SECRET_BYTES_MIN || key.length > SECRET_BYTES_MAX) {
    throw new TypeError(
      `not a secret: write \`whsec_\` and ${SECRET_BYTES_MIN} to ${SECRET_BYTES_MAX} bytes in base64`,
    );
  }
  return key;
}

/** Node reads over what is not base64, which would make many texts one signature. */
function base64(text: string): Buffer | undefined {
  const decoded = Buffer.from(text, "base64");
  return decoded.toString("base64") === text ? decoded : undefined;
}

function single(headers: ReceivedHeaders, name: string): string {
  const value = typeof headers.get === "function" ? headers.get(name) : (headers as Record<string, unknown>)[name];
  if (typeof value !== "string") throw unsigned(name);
  return value;
}

function unsigned(name: string): WebhookError {
  return new WebhookError("unsigned", `the header ${name} is not there once and readable`);
}
