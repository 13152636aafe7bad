"""The payments API as its clients meet it, killed in mid-work too.

DATABASE_URL=postgres://... [KILLS=40] [SEED=17] python test_payments.py
"""

import json
import os
import random
import secrets
import socket
import subprocess
import sys
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException

import psycopg

DATABASE_URL = os.environ["DATABASE_URL"]
KILLS = int(os.environ.get("KILLS", 40))
SEED = int(os.environ.get("SEED", 17))
RUN = secrets.token_hex(4)
PATIENCE_SECONDS = 60
KEYS_PER_KILL = 8

# What a test begins itself, in the words of the request it stands for.
BEGIN = """SELECT operation, fence FROM hapax.begin('shop', 'POST /payments', %s,
           request => %s, method => 'POST', path => '/payments')"""


class Server:
    """The API in a process of its own."""

    def __init__(self, options=""):
        self.options, self.port = options, free_port()
        self.start()

    def start(self):
        command = [sys.executable, "-m", "uvicorn", "payments:app", "--log-level", "error"]
        command += ["--port", str(self.port)]
        here = os.path.dirname(os.path.abspath(__file__))
        self.process = subprocess.Popen(
            command, cwd=here, env={**os.environ, "PGOPTIONS": self.options}
        )
        give_up_at = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), 1).close()
            except OSError:
                assert self.process.poll() is None and time.monotonic() < give_up_at
                time.sleep(0.02)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def post(self, key, body):
        """Status, headers and bytes. ConnectionRefusedError if nobody was there to ask."""
        headers = {} if key is None else {"Idempotency-Key": f'"{key}"'}
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=10)) as connection:
            connection.request("POST", "/payments", body, headers)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()


class Payments(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        serializable = "-c default_transaction_isolation=serializable"
        cls.servers = [Server(), Server(serializable)]
        cls.db = psycopg.connect(DATABASE_URL, autocommit=True)

    @classmethod
    def tearDownClass(cls):
        cls.db.close()
        for server in cls.servers:
            server.kill()

    def test_a_retry_hears_the_first_answer_to_the_byte(self):
        key = fresh("retry")
        first = self.servers[0].post(key, order(key))
        again = self.servers[1].post(key, order(key))
        self.assertEqual((first[0], again[0]), (201, 201))
        self.assertEqual(first[2], again[2])
        for name in ["Content-Type", "Idempotency-Expires"]:
            self.assertTrue(first[1][name])
            self.assertEqual(first[1][name], again[1][name])
        self.assertIsNone(first[1]["Idempotent-Replayed"])
        self.assertEqual(again[1]["Idempotent-Replayed"], "true")
        self.check_paid(key, times=1)

    def test_thirty_two_at_once_pay_once(self):
        for server in self.servers:
            key = fresh(f"crowd-{server.port}")
            with ThreadPoolExecutor(32) as crowd:
                asked = [crowd.submit(persist, [server], key, random, []) for _ in range(32)]
                answers = {answer.result()[1] for answer in asked}
            self.assertEqual(len(answers), 1)
            self.check_paid(key, times=1)

    def test_another_request_under_a_used_key_is_refused(self):
        key = fresh("used")
        self.servers[0].post(key, order(key))
        status, _, body = self.servers[0].post(key, order(key, cents=200))
        self.assertEqual((status, json.loads(body)["differs"]), (422, ["body"]))
        self.check_paid(key, times=1)

    def test_a_failure_for_good_is_kept_and_leaves_no_payment(self):
        for name, account, cents, expected in [
            ("poor", "eve", 101, 402),
            ("stranger", "nobody", 1, 404),
            ("nothing", "ada", 0, 400),
        ]:
            key = fresh(name)
            first = self.servers[0].post(key, order(key, account, cents))
            again = self.servers[1].post(key, order(key, account, cents))
            self.assertEqual((first[0], again[0]), (expected, expected))
            self.assertEqual(first[2], again[2])
            self.assertEqual(again[1]["Idempotent-Replayed"], "true")
            self.check_paid(key, times=0)

    def test_without_one_key_nothing_is_paid(self):
        name = fresh("keyless")
        for key in [None, "", " ", "k" * 256, 'a" "b']:
            status, _, _ = self.servers[0].post(key, order(name))
            self.assertEqual(status, 400, key)
        self.check_paid(name, times=0)

    def test_while_another_is_at_work_a_request_is_told_when_to_ask_again(self):
        key = fresh("busy")
        with begun_elsewhere(key):
            status, headers, _ = self.servers[0].post(key, order(key))
        self.assertEqual((status, headers["Retry-After"]), (409, "1"))
        self.assertEqual(self.servers[0].post(key, order(key))[0], 201)
        self.check_paid(key, times=1)

    def test_a_lost_connection_is_told_and_the_next_request_pays(self):
        key = fresh("lost")
        with begun_elsewhere(key), ThreadPoolExecutor(1) as client:
            asked = client.submit(self.servers[0].post, key, order(key))
            self.terminate_whoever_waits()
            self.assertEqual(asked.result()[0], 503)
        self.assertEqual(self.servers[0].post(key, order(key))[0], 201)
        self.check_paid(key, times=1)

    def test_what_was_committed_without_an_end_is_in_doubt_once_its_lease_is_over(self):
        key = fresh("doubt")
        self.db.execute(BEGIN, (key, order(key)))
        status, headers, _ = self.servers[0].post(key, order(key))
        self.assertEqual(status, 409)
        self.assertGreater(int(headers["Retry-After"]), 1)
        self.db.execute("UPDATE hapax.operations SET until = 1 WHERE key = %s", (key,))
        status, headers, _ = self.servers[0].post(key, order(key))
        self.assertEqual((status, headers["Retry-After"]), (409, None))
        self.check_paid(key, times=0)

    def test_a_retry_after_retention_is_refused_while_there_is_a_tombstone(self):
        key = fresh("late")
        self.servers[0].post(key, order(key, "eve", 101))
        past = "expires_at = hapax.clock() - 1, tombstone = 3600000000"
        self.db.execute(f"UPDATE hapax.operations SET {past} WHERE key = %s", (key,))
        status, _, _ = self.servers[0].post(key, order(key, "eve", 101))
        self.assertEqual(status, 410)

    def test_killed_in_mid_work_every_order_is_paid_once(self):
        dice, answers, cut = random.Random(SEED), {}, []
        with ThreadPoolExecutor(KEYS_PER_KILL * 2) as clients:
            for kill in range(KILLS):
                keys = [fresh(f"kill-{kill}-{n}") for n in range(KEYS_PER_KILL)] * 2
                seeds = [random.Random(dice.random()) for _ in keys]
                asked = [
                    clients.submit(persist, self.servers, key, own, cut)
                    for key, own in zip(keys, seeds)
                ]
                victim = dice.choice(self.servers)
                # The instant is what is tried: it is waited for, not for anything to happen.
                time.sleep(dice.uniform(0, 0.15))
                victim.kill()
                victim.start()
                for answer in asked:
                    key, body = answer.result()
                    self.assertEqual(answers.setdefault(key, body), body)
        for key, body in answers.items():
            status, headers, again = self.servers[0].post(key, order(key))
            self.assertEqual((status, headers["Idempotent-Replayed"]), (201, "true"))
            self.assertEqual(again, body)
            self.check_paid(key, times=1)
        self.assertEqual(len(answers), KILLS * KEYS_PER_KILL)
        self.assertTrue(cut, "no kill met a request")
        print(f"{KILLS} kills, seed {SEED}: {len(answers)} keys, {len(cut)} requests cut off")

    def check_paid(self, key, times):
        """The payments, the events and the completed keys of an order named like its key."""
        counts = """SELECT (SELECT count(*) FROM payments WHERE order_id = %(key)s),
            (SELECT count(*) FROM hapax.outbox WHERE key = %(key)s),
            (SELECT count(*) FROM hapax.operations_readable
             WHERE key = %(key)s AND state = 'completed'),
            (SELECT sum(cents) FROM (TABLE accounts UNION ALL
             SELECT account, cents FROM payments) AS all_money)"""
        found = self.db.execute(counts, {"key": key}).fetchone()
        self.assertEqual(found, (times, times, times, 200_000_100), key)

    def terminate_whoever_waits(self):
        terminate = """SELECT pg_terminate_backend(pid) FROM pg_stat_activity
            WHERE datname = current_database() AND wait_event = 'advisory'"""
        while not self.db.execute(terminate).fetchall():
            time.sleep(0.01)


@contextmanager
def begun_elsewhere(key):
    """Holds the operation in a transaction that is then rolled back."""
    with psycopg.connect(DATABASE_URL) as other:
        other.execute(BEGIN, (key, order(key)))
        yield
        other.rollback()


def order(name, account="ada", cents=100):
    return json.dumps({"order": name, "account": account, "cents": cents}).encode()


def fresh(name):
    return f"{name}-{RUN}"


def persist(servers, key, dice, cut):
    """Asks again with the same key until it is paid: the key, and the bytes of the answer.

    `cut` takes the keys of requests that were cut off before their answer.
    """
    give_up_at = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < give_up_at:
        try:
            status, _, body = dice.choice(servers).post(key, order(key))
        except ConnectionRefusedError:
            time.sleep(0.02)
            continue
        except (OSError, HTTPException):
            cut.append(key)
            continue
        if status == 201:
            return key, body
        assert status in (409, 503), (key, status, body)
        time.sleep(dice.uniform(0, 0.1))
    raise TimeoutError(f"{key} was never answered")


def free_port():
    """A port that the system gives to nobody who asks for any."""
    while True:
        port = random.randrange(12_000, 32_000)
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


if __name__ == "__main__":
    unittest.main()
