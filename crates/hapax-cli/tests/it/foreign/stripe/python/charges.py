"""Charges by Stripe's own library for Python, at the address of the first argument."""

import sys
from concurrent.futures import ThreadPoolExecutor

import stripe

client = stripe.StripeClient(
    "sk_test_alice", base_addresses={"api": sys.argv[1]}, max_network_retries=8
)


def charge(key, amount, does, account=None):
    options = {"idempotency_key": key}
    if account:
        options["stripe_account"] = account
    params = {"amount": amount, "currency": "eur", "description": does}
    try:
        return client.v1.charges.create(params, options).id
    except stripe.StripeError as error:
        return f"{type(error).__name__} {error.http_status} {error.error.code}"


def told(what, *said):
    print(f"{what}: {', '.join(said)}")


told("again", charge("k;1", 100, "pay"), charge("k;1", 100, "pay"))
told("reused", charge("k;1", 999, "pay"))
told("accounts", *(charge("k-2", 100, "pay", account) for account in ["acct_1", "acct_2"]))
with ThreadPoolExecutor() as pool:
    both = [pool.submit(charge, "k-3", 100, "wait") for _ in range(2)]
    told("in flight", *sorted(charged.result() for charged in both))
told("failed", charge("k-4", 100, "fail"), charge("k-4", 100, "fail"))
told("vanished", charge("k-5", 100, "vanish"), charge("k-5", 100, "vanish"))
