// A payments API that knows nothing of retries: every POST is another payment.
//
// node payments.mjs [PORT]

import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

const BANK_MILLIS = 2000;
const BODY_BYTES_MAX = 64 * 1024;

const ledger = [];

const server = createServer(async (request, response) => {
  const answer = (status, value) => {
    const body = JSON.stringify(value) + "\n";
    const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(body) };
    response.writeHead(status, headers).end(body);
  };
  if (request.method !== "POST") return answer(200, ledger);
  try {
    const { order, cents } = JSON.parse(await text(request));
    if (order === undefined || cents === undefined) throw new Error("send an order and cents");
    const payment = { id: ledger.length + 1, order, cents };
    ledger.push(payment);
    await sleep(BANK_MILLIS);
    answer(201, payment);
  } catch (error) {
    answer(400, { error: error.message });
  }
});

async function text(request) {
  const chunks = [];
  let length = 0;
  for await (const chunk of request) {
    length += chunk.length;
    if (length > BODY_BYTES_MAX) throw new Error("too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

const port = Number(process.argv[2] ?? 3000);
server.listen(port, "127.0.0.1", () => console.log(`payments at http://127.0.0.1:${port}/payments`));
