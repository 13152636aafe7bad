// A process that sends an operation, to be killed: node client-worker.mjs JOURNAL URL

import { Client } from "hapax-once";

const [journal, url] = process.argv.slice(2);
const client = new Client({ journal, headers: { authorization: "Bearer sk_test" } });
await client.send({ name: "charge-order-42", url, json: { effect: "charged", how: "slow" } });
console.log("answered");
await client.close();
