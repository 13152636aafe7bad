"""The client: one key for all attempts, four words, and a journal that survives its process."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from conftest import cases, served
from fastapi import FastAPI
from psycopg_pool import ConnectionPool

from hapax_once import errors
from hapax_once.client import (
    AsyncClient,
    AsyncRetryTransport,
    CallError,
    CallGaveUp,
    CallRefused,
    CallUnknown,
    Client,
    CredentialsMissing,
    Held,
    NameReused,
    Reply,
    RetryTransport,
)
from hapax_once.client.pursuit import Patience
from hapax_once.client.secret import is_secret_header
from hapax_once.key import read_key

HASTE = Patience(deadline_seconds=3.0, attempt_seconds=0.3, attempts_max=3)


@dataclass
class Say:
    """What the server says to a request."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    silent: bool = False
    """Says nothing at all."""
    cut: bool = False
    """Breaks off in the middle of its body."""
    drips: bool = False
    """Sends its body byte by byte, and never the last one."""


class Server(ThreadingHTTPServer):
    """Says what it is told to, path by path; the last thing from then on."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 100

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.script: dict[str, list[Say]] = {}
        self.heard: dict[str, list[dict[str, str]]] = {}
        self.ended = threading.Event()

    def keys(self, path: str) -> list[str]:
        return [read_key([headers["idempotency-key"]]) for headers in self.heard.get(path, [])]


class Connection(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.rfile.read(int(headers.get("content-length", "0")))
        self.server.heard.setdefault(self.path, []).append(headers)
        script = self.server.script[self.path]
        say = script.pop(0) if len(script) > 1 else script[0]
        if say.silent:
            self.server.ended.wait(20)
            self.close_connection = True
            return
        self.send_response(say.status)
        for name, value in say.headers.items():
            self.send_header(name, value)
        if say.status not in (204, 304):
            self.send_header("Content-Length", str(len(say.body)))
        self.end_headers()
        if say.drips:
            for byte in say.body[:-1]:
                self.wfile.write(bytes([byte]))
                self.server.ended.wait(0.05)
        elif say.cut:
            self.wfile.write(say.body[:-1])
            self.close_connection = True
        elif say.status not in (204, 304):
            self.wfile.write(say.body)

    do_GET = do_POST

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """What the client does is looked at by the tests."""


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.ended.set()
    server.shutdown()
    thread.join()
    server.server_close()


@contextmanager
def hasty(journal: Path | None = None, **more: Any) -> Iterator[Client]:
    with Client(
        journal, **{"deadline": 3.0, "attempt_timeout": 0.3, "attempts_max": 3, **more}
    ) as client:
        yield client


async def test_every_answer_means_what_the_vectors_say(server: Server) -> None:
    """Over real connections, many cases at once."""
    listed = cases("answers.json")
    for number, case in enumerate(listed):
        say = Say(case["status"], case["headers"], b"")
        server.script[f"/repeat/{number}"] = [say, Say(200)]
        server.script[f"/last/{number}"] = [say]
        server.script[f"/silence/{number}"] = [Say(silent=True), say]
    transport = AsyncRetryTransport(patience=HASTE)
    places = asyncio.Semaphore(20)
    async with httpx.AsyncClient(transport=transport, base_url=server.url) as http:

        async def ask(what: str, number: int) -> Any:
            async with places:
                return (await http.post(f"/{what}/{number}")).extensions["hapax"]

        async def check(number: int, case: dict[str, Any]) -> None:
            asked = (ask(what, number) for what in ("repeat", "last", "silence"))
            repeat, last, silence = await asyncio.gather(*asked)
            assert (repeat.attempts > 1) == case["repeat"], case
            assert last.word == case["conclusion"], case
            assert silence.word == case["conclusion_after_silence"], case
            assert len(set(server.keys(f"/silence/{number}"))) == 1, "one key for all attempts"

        await asyncio.gather(*(check(number, case) for number, case in enumerate(listed)))


def test_all_attempts_of_a_call_have_one_key_and_less_time(server: Server) -> None:
    server.script["/pay"] = [
        Say(503),
        Say(502),
        Say(201, {"Idempotent-Replayed": "true"}, b'{"paid":true}'),
    ]
    with hasty() as client:
        reply = client.post(f"{server.url}/pay", json={"cents": 100})
    assert (reply.status, reply.json(), reply.attempts, reply.replayed) == (
        201,
        {"paid": True},
        3,
        True,
    )
    assert set(server.keys("/pay")) == {reply.key}
    heard = server.heard["/pay"]
    assert {headers["hapax-retry"] for headers in heard} == {"never"}
    assert all(0 < int(headers["hapax-deadline"]) <= 300 for headers in heard)


@pytest.mark.parametrize(
    ("say", "error", "attempts"),
    [
        (Say(402), CallRefused, 1),
        (Say(302, {"Location": "/elsewhere"}), CallRefused, 1),
        (Say(503), CallUnknown, 3),
        (Say(429), CallGaveUp, 3),
        (Say(silent=True), CallUnknown, 3),
        (Say(201, cut=True), CallUnknown, 3),
        (Say(201, body=b"x" * 100, drips=True), CallUnknown, 3),
    ],
)
def test_each_end_has_its_word(
    server: Server, say: Say, error: type[CallError], attempts: int
) -> None:
    server.script["/pay"] = [say]
    with hasty() as client, pytest.raises(error) as raised:
        client.post(f"{server.url}/pay")
    assert raised.value.attempts == len(server.heard["/pay"]) == attempts
    assert len(set(server.keys("/pay"))) == 1
    assert "/elsewhere" not in server.heard


def test_where_nobody_listens_it_gives_up_because_nothing_was_sent() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with hasty() as client, pytest.raises(CallGaveUp) as raised:
            client.post(f"http://127.0.0.1:{taken.getsockname()[1]}/pay")
    assert (raised.value.word, raised.value.attempts) == ("gave up", 3)


def test_retry_after_is_waited_for_and_one_beyond_the_deadline_ends_the_call(
    server: Server,
) -> None:
    server.script["/soon"] = [Say(429, {"Retry-After": "1"}), Say(200)]
    server.script["/late"] = [Say(429, {"Retry-After": "999999"}), Say(200)]
    with hasty() as client:
        began = time.monotonic()
        assert client.post(f"{server.url}/soon").attempts == 2
        assert 1.0 <= time.monotonic() - began < 2.5
        began = time.monotonic()
        with pytest.raises(CallGaveUp):
            client.post(f"{server.url}/late")
        assert time.monotonic() - began < 1.0


def test_a_server_that_says_yes_and_then_no_is_not_believed(server: Server) -> None:
    server.script["/pay"] = [Say(201, cut=True), Say(402, {"Idempotent-Replayed": "true"})]
    with hasty() as client, pytest.raises(CallUnknown):
        client.post(f"{server.url}/pay")


def test_what_only_reads_has_no_key_and_leaves_no_doubt(server: Server) -> None:
    server.script["/read"] = [Say(500)]
    with hasty() as client, pytest.raises(CallGaveUp):
        client.send("GET", f"{server.url}/read")
    assert "idempotency-key" not in server.heard["/read"][0]


def test_a_name_has_one_key_and_its_answer_is_kept(server: Server, tmp_path: Path) -> None:
    server.script["/pay"] = [Say(201, {"X-A": "b"}, b'{"paid":true}')]
    journal = tmp_path / "client.db"
    with hasty(journal) as client:
        first = client.post(f"{server.url}/pay", name="charge-1", json={"cents": 1})
        with pytest.raises(NameReused):
            client.post(f"{server.url}/pay", name="charge-1", json={"cents": 2})
    with hasty(journal) as client:
        again = client.post(f"{server.url}/pay", name="charge-1", json={"cents": 1})
        assert client.resume() == {}
    assert (first.recorded, again.recorded) == (False, True)
    assert (again.status, again.json(), again.headers["x-a"]) == (201, {"paid": True}, "b")
    assert again.key == first.key
    assert len(server.heard["/pay"]) == 1
    assert stat.S_IMODE(journal.stat().st_mode) == 0o600


def test_a_refusal_is_recorded_and_what_is_unknown_is_asked_again(
    server: Server, tmp_path: Path
) -> None:
    server.script["/no"] = [Say(402, body=b"no money")]
    server.script["/pay"] = [
        Say(409, {"Hapax-Refusal": "outcome-in-doubt", "Content-Type": "application/problem+json"}),
        Say(201),
    ]
    with hasty(tmp_path / "client.db") as client:
        for recorded in (False, True):
            with pytest.raises(CallRefused) as refused:
                client.post(f"{server.url}/no", name="no")
            assert refused.value.reply is not None
            assert (refused.value.reply.body, refused.value.reply.recorded) == (
                b"no money",
                recorded,
            )
        with pytest.raises(CallUnknown):
            client.post(f"{server.url}/pay", name="pay")
        assert client.resume() == {}, "what is unknown is for somebody to decide"
        assert client.take_up("pay").status == 201
        assert client.purge() == 0
        client.forget("pay")
        assert client.post(f"{server.url}/pay", name="pay").status == 201
    assert len(server.heard["/no"]) == 1
    keys = server.keys("/pay")
    assert (len(keys), len(set(keys))) == (3, 2), "forgotten, it begins anew"


def test_the_operation_is_on_disk_before_its_first_byte_arrives(
    server: Server, tmp_path: Path
) -> None:
    journal = tmp_path / "client.db"
    seen: list[Any] = []
    posted = Connection.do_POST

    class Looking(Connection):
        def do_POST(self) -> None:
            with sqlite3.connect(f"file:{journal}?mode=ro", uri=True) as reader:
                seen.append(
                    reader.execute("SELECT state, key, body FROM hapax_once_calls").fetchone()
                )
            reader.close()
            posted(self)

    server.RequestHandlerClass = Looking
    server.script["/pay"] = [Say(201)]
    with hasty(journal) as client:
        key = client.post(f"{server.url}/pay", name="charge-1", content=b"100").key
        (synchronous,) = client.needs_journal().connection.execute("PRAGMA synchronous").fetchone()
    assert seen == [("pending", key, b"100")]
    assert synchronous == 2, "FULL: every commit is on disk"


def test_credentials_are_sent_and_not_written(server: Server, tmp_path: Path) -> None:
    server.script["/pay"] = [Say(silent=True), Say(201)]
    journal = tmp_path / "client.db"
    of_client = {"X-Api-Key": "of-the-client"}
    with hasty(journal, headers=of_client, deadline=0.2) as client, pytest.raises(CallUnknown):
        client.post(f"{server.url}/pay", name="n", headers={"Authorization": "Bearer of-the-call"})
    assert server.heard["/pay"][0]["authorization"] == "Bearer of-the-call"
    assert server.heard["/pay"][0]["x-api-key"] == "of-the-client"
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"of-the" not in written
    with hasty(journal) as client, pytest.raises(CredentialsMissing, match="authorization"):
        client.take_up("n")
    with hasty(journal, headers={"Authorization": "Bearer anew"}) as client:
        assert client.take_up("n").status == 201
    assert server.heard["/pay"][1]["authorization"] == "Bearer anew"


def test_who_pursues_an_operation_has_it_alone(server: Server, tmp_path: Path) -> None:
    server.script["/pay"] = [Say(silent=True), Say(201)]
    journal = tmp_path / "client.db"
    replies: list[Reply] = []
    with hasty(journal, attempt_timeout=1.0) as one, hasty(journal) as other:
        thread = threading.Thread(
            target=lambda: replies.append(one.post(f"{server.url}/pay", name="n"))
        )
        thread.start()
        while "/pay" not in server.heard:
            time.sleep(0.01)
        with pytest.raises(Held):
            other.post(f"{server.url}/pay", name="n")
        thread.join()
        assert other.post(f"{server.url}/pay", name="n").recorded
    assert [reply.attempts for reply in replies] == [2]


def test_a_name_needs_a_journal_and_is_short(server: Server, tmp_path: Path) -> None:
    with hasty() as client, pytest.raises(errors.Invalid, match="journal"):
        client.post(server.url, name="n")
    with hasty(tmp_path / "client.db") as client:
        for name in ("", "café", "n" * 256):
            with pytest.raises(errors.Invalid):
                client.post(server.url, name=name)
        with pytest.raises(errors.Invalid):
            client.post(server.url, content=b"x" * ((1 << 20) + 1))
        with pytest.raises(errors.Invalid):
            client.post(server.url, key="two\nlines")
    assert server.heard == {}


def test_a_file_of_somebody_else_is_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.db"
    with sqlite3.connect(theirs) as connection:
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    with pytest.raises(errors.Invalid, match="no journal"):
        Client(theirs)


SENDER = """
import sys
from hapax_once.client import Client

with Client(sys.argv[1], attempt_timeout=1.0) as client:
    client.post(sys.argv[2], name="charge-1", json={"cents": 100})
"""


def test_a_client_that_is_killed_while_it_sends_is_finished_by_the_next_one(
    url: str, tmp_path: Path, hapax: Any
) -> None:
    """Against a real service: the first process is killed while the service is at work."""
    from hapax_once import Answer
    from hapax_once.asgi import Middleware
    from hapax_once.http import TRANSACTION
    from hapax_once.psycopg import Database

    journal, heard, arrived = tmp_path / "client.db", list[str](), threading.Event()

    async def pay(scope: Any, receive: Any, send: Any) -> None:
        heard.append(dict(scope["headers"])[b"idempotency-key"].decode())
        arrived.set()
        if len(heard) == 1:
            await asyncio.sleep(0.5)
        scope[TRANSACTION].execute("INSERT INTO effects VALUES ('paid')")
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": Answer.json({"paid": True}).body})

    with ConnectionPool(url, min_size=1, max_size=4) as pool:
        app = Middleware(pay, Database(pool), tenant="shop")
        with served(app) as address, hapax.one_effect("effects"):
            command = [sys.executable, "-c", SENDER, str(journal), f"{address}/payments"]
            sender = subprocess.Popen(command)
            assert arrived.wait(10)
            os.kill(sender.pid, signal.SIGKILL)
            assert sender.wait() == -signal.SIGKILL
            with Client(journal, attempt_timeout=5.0) as client:
                ends = time.monotonic() + 10
                while not (outcomes := client.resume()):
                    assert time.monotonic() < ends, "its lease ends two seconds after it was sent"
                    time.sleep(0.05)
            reply = outcomes["charge-1"]
    assert isinstance(reply, Reply)
    assert (reply.status, reply.json(), reply.attempts) == (201, {"paid": True}, 2)
    assert heard == [f'"{reply.key}"'], "the second one was answered with what the first had done"
    assert reply.replayed


async def test_the_client_for_asyncio_does_the_same(server: Server, tmp_path: Path) -> None:
    server.script["/pay"] = [Say(503), Say(201, body=b'{"paid":true}')]
    server.script["/late"] = [Say(silent=True), Say(201)]
    journal = tmp_path / "client.db"
    async with AsyncClient(journal, deadline=3.0, attempt_timeout=0.3) as client:
        reply = await client.post(f"{server.url}/pay", name="n", json={"cents": 1})
        assert (reply.json(), reply.attempts) == ({"paid": True}, 2)
        assert (await client.post(f"{server.url}/pay", name="n", json={"cents": 1})).recorded
        with pytest.raises(CallUnknown):
            await client.post(f"{server.url}/late", name="late", deadline=0.2)
        assert (await client.take_up("late")).status == 201
        assert await client.resume() == {}
        assert await client.purge() == 0
        await client.forget("n")


def test_a_transport_gives_any_client_of_httpx_keys_and_retries(server: Server) -> None:
    server.script["/pay"] = [Say(502), Say(201)]
    server.script["/given"] = [Say(201)]
    server.script["/dead"] = [Say(silent=True)]
    transport = RetryTransport(patience=HASTE)
    with httpx.Client(transport=transport, base_url=server.url) as http:
        tried = http.post("/pay", json={"cents": 1}).extensions["hapax"]
        assert (tried.word, tried.attempts) == ("done", 2)
        assert server.keys("/pay") == [tried.key, tried.key]
        given = http.post("/given", headers={"Idempotency-Key": "a b"})
        assert given.extensions["hapax"].key == "a b"
        assert server.heard["/given"][0]["idempotency-key"] == '"a b"'
        with pytest.raises(httpx.ReadTimeout, match="unknown after 3 attempts"):
            http.post("/dead")
        with pytest.raises(httpx.LocalProtocolError):
            http.post("/given", headers={"Idempotency-Key": "a,b"})


@pytest.mark.parametrize("name", ["Authorization", "Cookie", "X-Api-Key", "x-auth-token", "DPoP"])
def test_secrets_are_known_by_their_names(name: str) -> None:
    assert is_secret_header(name)


@pytest.mark.parametrize("name", ["Idempotency-Key", "Content-Type", "X-Partition-Key", "Author"])
def test_what_only_names_something_is_no_secret(name: str) -> None:
    assert not is_secret_header(name)


def test_an_application_can_be_its_own_client() -> None:
    """A blocking client in a service of its own does not need an event loop."""
    app = FastAPI()

    @app.post("/pay", status_code=201)
    def pay() -> dict[str, bool]:
        return {"paid": True}

    with served(app) as address, hasty() as client:
        assert client.post(f"{address}/pay").json() == {"paid": True}
