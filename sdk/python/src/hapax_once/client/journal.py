"""What a client has begun, in a file: it is on disk before the first byte leaves."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..errors import HapaxError, Invalid
from ..operation import check_name
from .pursuit import Outgoing, Received
from .reading import Word

FORMAT = 1
BUSY_SECONDS = 5.0
NAME_BYTES_MAX = 255
LEASE_SECONDS = 1.0
"""How much longer than its attempt or its pause an operation is held."""

SCHEMA = """
CREATE TABLE hapax_once_calls (
    name       TEXT PRIMARY KEY NOT NULL,
    -- pending, done, refused, unknown, gave up
    state      TEXT NOT NULL,
    key        TEXT NOT NULL,
    method     TEXT NOT NULL,
    url        TEXT NOT NULL,
    headers    TEXT NOT NULL,
    -- Names of headers that were given and are not kept.
    withheld   TEXT NOT NULL,
    body       BLOB NOT NULL,
    -- Of what makes two requests the same.
    digest     BLOB NOT NULL,
    -- Who is at it, and until when that is believed.
    owner      BLOB NOT NULL,
    held_until REAL NOT NULL,
    attempts   INTEGER NOT NULL,
    -- Whether an attempt may have had an effect.
    is_sent    INTEGER NOT NULL,
    created_at REAL NOT NULL,
    ended_at   REAL,
    reason     TEXT,
    status     INTEGER,
    answer_headers TEXT,
    answer     BLOB
);
CREATE INDEX hapax_once_calls_pending ON hapax_once_calls (state) WHERE state = 'pending';
"""


class NameReused(HapaxError):
    """The name belongs to another request; nothing was sent."""

    kind = "name_reused"
    advice = (
        "the name belongs to another request: name each operation after what should happen once"
    )


class Held(HapaxError):
    """Another process or thread pursues the operation; nothing was sent."""

    kind = "held"

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(f"{name} is being pursued: ask again in {seconds:.1f} s at most")
        self.seconds = seconds


@dataclass(frozen=True)
class Entry:
    """An operation of the journal, as it was before it was taken up."""

    name: str
    outgoing: Outgoing
    withheld: tuple[str, ...]
    attempts: int
    is_sent: bool
    word: Word | None
    """What it came to; None while it is pending."""
    received: Received | None

    @property
    def is_over(self) -> bool:
        return self.word in ("done", "refused")


class Journal:
    """A SQLite file, readable by its owner alone. Processes of one machine may share it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Made by us, because SQLite would let others of this machine read it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        self.lock = threading.Lock()
        self.connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self.prepare(path)
        except BaseException:
            self.connection.close()
            raise

    def prepare(self, path: str | os.PathLike[str]) -> None:
        """Makes the file a journal, unless it is one."""
        self.connection.row_factory = sqlite3.Row
        self.connection.execute("PRAGMA journal_mode = WAL")
        self.connection.execute("PRAGMA synchronous = FULL")
        with self.transaction() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {FORMAT}")
            elif version != FORMAT:
                raise Invalid(
                    f"{os.fspath(path)} is no journal of format {FORMAT}, but of {version}"
                )

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        with self.lock:
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield self.connection
            except BaseException:
                self.connection.execute("ROLLBACK")
                raise
            self.connection.execute("COMMIT")

    def begin(
        self, name: str, outgoing: Outgoing, withheld: tuple[str, ...], owner: bytes, seconds: float
    ) -> Entry:
        """Writes an operation down before it is sent, or takes up what has its name."""
        check_name("name", name, NAME_BYTES_MAX)
        digest, now = digest_of(outgoing), time.time()
        held_until = now + seconds + LEASE_SECONDS
        with self.transaction() as connection:
            row = find(connection, name)
            if row is None:
                connection.execute(
                    """INSERT INTO hapax_once_calls (name, state, key, method, url, headers,
                           withheld, body, digest, owner, held_until, attempts, is_sent, created_at)
                       VALUES (?, 'pending', ?, ?, ?, ?, ?, ?, ?, ?, ?, 1, 1, ?)""",
                    (
                        name,
                        outgoing.key,
                        outgoing.method,
                        outgoing.url,
                        json.dumps(outgoing.headers),
                        json.dumps(withheld),
                        outgoing.body,
                        digest,
                        owner,
                        held_until,
                        now,
                    ),
                )
                return Entry(name, outgoing, withheld, 0, False, None, None)
            if row["digest"] != digest:
                raise NameReused(name)
            take(connection, row, owner, held_until)
        return entry_of(row, name)

    def find(self, name: str) -> Entry:
        """What is written under a name."""
        with self.lock:
            return entry_of(find(self.connection, name), name)

    def take_up(self, name: str, owner: bytes, seconds: float) -> Entry:
        """Takes up an operation by its name alone."""
        with self.transaction() as connection:
            row = find(connection, name)
            entry = entry_of(row, name)
            take(connection, row, owner, time.time() + seconds + LEASE_SECONDS)
        return entry

    def note_attempt(self, name: str, owner: bytes, seconds: float) -> None:
        """Writes down that it is sent once more."""
        with self.transaction() as connection:
            connection.execute(
                """UPDATE hapax_once_calls SET attempts = attempts + 1, is_sent = 1, held_until = ?
                   WHERE name = ? AND owner = ?""",
                (time.time() + seconds + LEASE_SECONDS, name, owner),
            )

    def end(
        self, name: str, owner: bytes, word: Word, reason: str, received: Received | None
    ) -> None:
        """Writes down what it came to, unless somebody else has taken it up."""
        answer: tuple[Any, ...] = (None, None, None)
        if received is not None:
            answer = (received.status, json.dumps(received.headers), received.body)
        with self.transaction() as connection:
            connection.execute(
                """UPDATE hapax_once_calls
                   SET state = ?, reason = ?, status = ?, answer_headers = ?, answer = ?,
                       ended_at = ?, held_until = 0, is_sent = ?
                   WHERE name = ? AND owner = ?""",
                (word, reason, *answer, time.time(), int(word != "gave up"), name, owner),
            )

    def pending(self) -> list[str]:
        """The names of what somebody should be pursuing, and nobody is."""
        with self.lock:
            rows = self.connection.execute(
                """SELECT name FROM hapax_once_calls WHERE state = 'pending' AND held_until <= ?
                   ORDER BY created_at""",
                (time.time(),),
            ).fetchall()
        return [row["name"] for row in rows]

    def forget(self, name: str) -> None:
        """Removes an operation: its name begins anew, with a new key."""
        with self.transaction() as connection:
            connection.execute("DELETE FROM hapax_once_calls WHERE name = ?", (name,))

    def purge(self, before: float) -> int:
        """Removes what ended before an instant; what is unknown is for somebody to decide."""
        with self.transaction() as connection:
            return connection.execute(
                """DELETE FROM hapax_once_calls
                   WHERE state IN ('done', 'refused', 'gave up') AND ended_at < ?""",
                (before,),
            ).rowcount

    def close(self) -> None:
        self.connection.close()


def find(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute("SELECT * FROM hapax_once_calls WHERE name = ?", (name,)).fetchone()


def take(connection: sqlite3.Connection, row: Any, owner: bytes, held_until: float) -> None:
    """Makes an operation that is not over ours, to be sent at once."""
    if row["state"] in ("done", "refused"):
        return
    now = time.time()
    if row["state"] == "pending" and row["held_until"] > now and row["owner"] != owner:
        raise Held(row["name"], row["held_until"] - now)
    connection.execute(
        """UPDATE hapax_once_calls SET state = 'pending', owner = ?, held_until = ?,
               attempts = attempts + 1, is_sent = 1
           WHERE name = ?""",
        (owner, held_until, row["name"]),
    )


def entry_of(row: Any, name: str) -> Entry:
    if row is None:
        raise Invalid(f"there is no operation called {name}")
    headers = tuple((name, value) for name, value in json.loads(row["headers"]))
    received = None
    if row["status"] is not None:
        answered = tuple((name, value) for name, value in json.loads(row["answer_headers"]))
        received = Received(row["status"], answered, row["answer"])
    return Entry(
        name=name,
        outgoing=Outgoing(row["method"], row["url"], headers, row["body"], row["key"]),
        withheld=tuple(json.loads(row["withheld"])),
        attempts=row["attempts"],
        is_sent=bool(row["is_sent"]),
        word=None if row["state"] == "pending" else row["state"],
        received=received,
    )


def digest_of(outgoing: Outgoing) -> bytes:
    """Of what makes two requests the same: method, address and body."""
    parts = [outgoing.method.encode(), outgoing.url.encode(), outgoing.body]
    return hashlib.sha256(b"".join(len(part).to_bytes(8, "big") + part for part in parts)).digest()
