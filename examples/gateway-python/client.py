"""Pays for an order, and asks again with the same key until there is an answer.

python3 client.py ORDER CENTS [GATEWAY]
"""

import json
import sys
import time
import urllib.error
import urllib.request

PATIENCE_SECONDS = 1
ATTEMPTS_MAX = 10


def pay(gateway, order, cents):
    body = json.dumps({"order": order, "cents": cents}).encode()
    headers = {"Content-Type": "application/json", "Idempotency-Key": f'"{order}"'}
    request = urllib.request.Request(f"{gateway}/payments", body, headers)
    for attempt in range(1, ATTEMPTS_MAX + 1):
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS) as answer:
                replayed = answer.headers.get("Idempotent-Replayed") == "true"
                return json.load(answer), attempt, replayed
        except urllib.error.HTTPError as refusal:
            if refusal.code not in (409, 429, 502, 503, 504):
                raise
            pause = int(refusal.headers.get("Retry-After", 1))
            print(f"attempt {attempt}: {refusal.code}, asking again in {pause} s", flush=True)
            time.sleep(pause)
        except OSError as error:
            print(f"attempt {attempt}: no answer ({error}), asking again", flush=True)
            time.sleep(0.1 * attempt)
    raise SystemExit(f"it is unknown whether {order} is paid; run this again to find out")


if __name__ == "__main__":
    gateway = sys.argv[3] if len(sys.argv) > 3 else "http://127.0.0.1:8080"
    payment, attempts, replayed = pay(gateway, sys.argv[1], int(sys.argv[2]))
    how = "told again" if replayed else "told at once"
    print(f"paid: payment {payment['id']}, attempt {attempts}, {how}")
