"""A payments API that knows nothing of retries: every POST is another payment.

python3 payments.py [PORT]
"""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BANK_SECONDS = 2
BODY_BYTES_MAX = 64 * 1024

ledger = []
writing = threading.Lock()


class Payments(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        if length > BODY_BYTES_MAX:
            self.close_connection = True
            return self.answer(413, {"error": "too large"})
        body = self.rfile.read(length)
        try:
            order, cents = (json.loads(body)[name] for name in ("order", "cents"))
        except (ValueError, KeyError, TypeError):
            return self.answer(400, {"error": "send an order and cents"})
        with writing:
            payment = {"id": len(ledger) + 1, "order": order, "cents": cents}
            ledger.append(payment)
        time.sleep(BANK_SECONDS)
        self.answer(201, payment)

    def do_GET(self):
        self.answer(200, ledger)

    def answer(self, status, value):
        body = json.dumps(value).encode() + b"\n"
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    print(f"payments at http://127.0.0.1:{port}/payments", flush=True)
    ThreadingHTTPServer(("127.0.0.1", port), Payments).serve_forever()
