// Charges by Stripe's own library for Node, at the address of the first argument.

import Stripe from "stripe";

const { hostname, port } = new URL(process.argv[2]);
const stripe = new Stripe("sk_test_alice", {
  host: hostname,
  port,
  protocol: "http",
  maxNetworkRetries: 8,
});

async function charge(key, amount, does, account) {
  const params = { amount, currency: "eur", description: does };
  const options = { idempotencyKey: key, ...(account && { stripeAccount: account }) };
  try {
    return (await stripe.charges.create(params, options)).id;
  } catch (error) {
    return `${error.type} ${error.statusCode} ${error.code}`;
  }
}

function told(what, ...said) {
  console.log(`${what}: ${said.join(", ")}`);
}

told("again", await charge("k;1", 100, "pay"), await charge("k;1", 100, "pay"));
told("reused", await charge("k;1", 999, "pay"));
told(
  "accounts",
  await charge("k-2", 100, "pay", "acct_1"),
  await charge("k-2", 100, "pay", "acct_2"),
);
const both = await Promise.all([charge("k-3", 100, "wait"), charge("k-3", 100, "wait")]);
told("in flight", ...both.sort());
told("failed", await charge("k-4", 100, "fail"), await charge("k-4", 100, "fail"));
told("vanished", await charge("k-5", 100, "vanish"), await charge("k-5", 100, "vanish"));
// The library leaves a request that it repeats open until its own timeout, 80 s.
process.exit();
