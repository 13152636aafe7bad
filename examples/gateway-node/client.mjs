// Pays for an order, and asks again with the same key until there is an answer.
//
// node client.mjs ORDER CENTS [GATEWAY]

import { setTimeout as sleep } from "node:timers/promises";

const PATIENCE_MILLIS = 1000;
const ATTEMPTS_MAX = 10;

async function pay(gateway, order, cents) {
  const headers = { "Content-Type": "application/json", "Idempotency-Key": `"${order}"` };
  const body = JSON.stringify({ order, cents });
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    try {
      const signal = AbortSignal.timeout(PATIENCE_MILLIS);
      const answer = await fetch(`${gateway}/payments`, { method: "POST", headers, body, signal });
      if (answer.ok) {
        const replayed = answer.headers.get("Idempotent-Replayed") === "true";
        return { payment: await answer.json(), attempt, replayed };
      }
      if (![409, 429, 502, 503, 504].includes(answer.status)) {
        fail(`refused with ${answer.status}: ${await answer.text()}`);
      }
      const pause = Number(answer.headers.get("Retry-After") ?? 1);
      console.log(`attempt ${attempt}: ${answer.status}, asking again in ${pause} s`);
      await sleep(pause * 1000);
    } catch (error) {
      console.log(`attempt ${attempt}: no answer (${error.message}), asking again`);
      await sleep(100 * attempt);
    }
  }
  fail(`it is unknown whether ${order} is paid; run this again to find out`);
}

function fail(message) {
  console.error(message);
  process.exit(1);
}

const [order, cents, gateway = "http://127.0.0.1:8080"] = process.argv.slice(2);
const { payment, attempt, replayed } = await pay(gateway, order, Number(cents));
const how = replayed ? "told again" : "told at once";
console.log(`paid: payment ${payment.id}, attempt ${attempt}, ${how}`);
