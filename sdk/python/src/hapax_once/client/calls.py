"""The client: one key for all attempts of a request, and one of four words for what came of it."""

from __future__ import annotations

import asyncio
import json as json_module
import logging
import os
import secrets
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

import httpx

from ..driver import run
from ..errors import HapaxError, Invalid
from ..key import HEADER, quoted_key
from ..operation import KEY_BYTES_MAX, check_name
from .journal import Entry, Journal
from .pursuit import READING_METHODS, Outgoing, Patience, Pursued, Received, Wire, pursue
from .reading import History, Word
from .secret import is_secret_header
from .wire import AsyncHttpxWire, HttpxWire

T = TypeVar("T")
LOG = logging.getLogger("hapax_once")

DEADLINE_SECONDS = 60.0
ATTEMPT_SECONDS = 10.0
ATTEMPTS_MAX = 5
REQUEST_BYTES_MAX = 1 << 20
RETENTION_SECONDS = 7 * 24 * 60 * 60.0


@dataclass(frozen=True)
class Reply:
    """What the server answered."""

    status: int
    headers: httpx.Headers
    body: bytes | None
    """None if it was larger than 16 MiB."""
    key: str | None
    attempts: int
    replayed: bool
    """Whether an earlier attempt had done it."""
    recorded: bool
    """Whether the journal knew, and nothing was sent."""

    def json(self) -> Any:
        """The body as JSON."""
        return json_module.loads(self.body or b"")


class CallError(HapaxError):
    """A call that was not done. `word` says what is known."""

    word: Word

    def __init__(self, reply: Reply | None, key: str | None, attempts: int, reason: str) -> None:
        super().__init__(reason)
        self.reply = reply
        self.key = key
        self.attempts = attempts


class CallRefused(CallError):
    """The server said no: it did not happen."""

    kind = "refused"
    word = "refused"
    advice = "the server refused it: change the request and give it a new name, or accept it"


class CallUnknown(CallError):
    """It may have happened, and nobody said."""

    kind = "unknown"
    word = "unknown"
    advice = "it may have happened: send the same name or key again, which has no second effect"


class CallGaveUp(CallError):
    """It did not happen: nothing was sent, or every answer said that nothing ran."""

    kind = "gave_up"
    word = "gave up"
    advice = "it did not happen: send it again when you like"


class CredentialsMissing(HapaxError):
    """The operation was begun with credentials that this client does not have; nothing was sent."""

    kind = "credentials_missing"
    advice = "the operation needs headers that are never written down: give them to the client"


ERRORS: dict[Word, type[CallError]] = {
    "refused": CallRefused,
    "unknown": CallUnknown,
    "gave up": CallGaveUp,
}


class Caller(ABC):
    """What both clients share. Its coroutines never suspend in the blocking one."""

    wire: Wire

    def __init__(
        self,
        journal: str | os.PathLike[str] | None,
        headers: Mapping[str, str] | None,
        deadline: float,
        attempt_timeout: float,
        attempts_max: int,
    ) -> None:
        self.journal = None if journal is None else Journal(journal)
        self.headers = {name.lower(): value for name, value in (headers or {}).items()}
        self.deadline = deadline
        self.attempt_timeout = attempt_timeout
        self.attempts_max = attempts_max

    @abstractmethod
    async def write(self, note: Callable[[], T]) -> T:
        """Writes to the journal."""

    def outgoing(
        self,
        method: str,
        url: str,
        json: Any,
        content: bytes | str,
        headers: Mapping[str, str] | None,
        key: str | None,
    ) -> Outgoing:
        given = {name.lower(): value for name, value in (headers or {}).items()}
        if json is not None:
            content = json_module.dumps(json, ensure_ascii=False, separators=(",", ":"))
            given.setdefault("content-type", "application/json")
        body = content.encode() if isinstance(content, str) else content
        if len(body) > REQUEST_BYTES_MAX:
            raise Invalid(
                f"a request has {REQUEST_BYTES_MAX} bytes at most, and this one {len(body)}"
            )
        method = method.upper()
        if key is None and method not in READING_METHODS:
            key = new_key()
        elif key is not None:
            check_name("key", key, KEY_BYTES_MAX)
        return Outgoing(method, url, tuple(given.items()), body, key)

    async def call(self, outgoing: Outgoing, name: str | None, deadline: float | None) -> Reply:
        if name is None:
            patience = Patience(deadline or self.deadline, self.attempt_timeout, self.attempts_max)
            return told(
                await self.pursue(outgoing, patience, History(reads_only=outgoing.reads_only)),
                outgoing,
            )
        journal = self.needs_journal()
        if outgoing.key is None:
            raise Invalid("what only reads needs no name: it can be sent as often as you like")
        owner = secrets.token_bytes(16)
        kept = tuple(pair for pair in outgoing.headers if not is_secret_header(pair[0]))
        withheld = tuple(name for name, _ in outgoing.headers if is_secret_header(name))
        written = Outgoing(outgoing.method, outgoing.url, kept, outgoing.body, outgoing.key)
        entry = await self.write(
            lambda: journal.begin(name, written, withheld, owner, self.attempt_timeout)
        )
        return await self.pursue_entry(entry, owner, outgoing.headers, deadline)

    async def pursue_entry(
        self,
        entry: Entry,
        owner: bytes,
        headers: tuple[tuple[str, str], ...],
        deadline: float | None,
    ) -> Reply:
        """Finishes an operation of the journal, unless it is finished."""
        journal, stored = self.needs_journal(), entry.outgoing
        if entry.is_over and entry.word is not None:
            known = Pursued(entry.word, 0, entry.received, False, None)
            return told(known, stored, entry.attempts, recorded=True)
        outgoing = Outgoing(stored.method, stored.url, headers, stored.body, stored.key)
        patience = Patience(deadline or self.deadline, self.attempt_timeout, None)

        async def note(attempt: int, seconds: float) -> None:
            # The first one was written down when it was taken up.
            if attempt > 1:
                await self.write(lambda: journal.note_attempt(entry.name, owner, seconds))

        pursued = await self.pursue(outgoing, patience, History(doubt=entry.is_sent), note)
        reason = str(pursued.error or "")
        end = partial(journal.end, entry.name, owner, pursued.word, reason, pursued.received)
        try:
            await self.write(end)
        except sqlite3.Error:
            LOG.warning("what came of %s is not written down: it is asked for again", entry.name)
        return told(pursued, outgoing, entry.attempts)

    async def pursue(
        self,
        outgoing: Outgoing,
        patience: Patience,
        history: History,
        note: Callable[[int, float], Coroutine[Any, Any, None]] | None = None,
    ) -> Pursued:
        headers = {**self.headers, **dict(outgoing.headers)}
        if outgoing.key is not None:
            headers[HEADER.lower()] = quoted_key(outgoing.key)
        sent = Outgoing(
            outgoing.method, outgoing.url, tuple(headers.items()), outgoing.body, outgoing.key
        )
        return await pursue(self.wire, sent, patience, history, note or no_note)

    async def resume_all(self) -> dict[str, Reply | HapaxError]:
        journal = self.needs_journal()
        outcomes: dict[str, Reply | HapaxError] = {}
        for name in await self.write(journal.pending):
            try:
                outcomes[name] = await self.take_up_named(name, None)
            except HapaxError as error:
                outcomes[name] = error
        return outcomes

    async def take_up_named(self, name: str, deadline: float | None) -> Reply:
        journal, owner = self.needs_journal(), secrets.token_bytes(16)
        known = await self.write(lambda: journal.find(name))
        if missing := [header for header in known.withheld if header not in self.headers]:
            raise CredentialsMissing(", ".join(missing))
        entry = await self.write(lambda: journal.take_up(name, owner, self.attempt_timeout))
        return await self.pursue_entry(entry, owner, entry.outgoing.headers, deadline)

    def needs_journal(self) -> Journal:
        if self.journal is None:
            raise Invalid("only a client with a journal can do this: Client('client.db')")
        return self.journal


async def no_note(_attempt: int, _seconds: float) -> None:
    """Without a journal nothing is written down."""


def told(pursued: Pursued, outgoing: Outgoing, before: int = 0, *, recorded: bool = False) -> Reply:
    """A reply, or the error that says what is known."""
    attempts, received = before + pursued.attempts, pursued.received
    reply = (
        None if received is None else reply_of(received, outgoing.key, attempts, pursued, recorded)
    )
    if pursued.word == "done" and reply is not None:
        return reply
    reason = str(pursued.error or (f"it was answered with {reply.status}" if reply else ""))
    raise ERRORS[pursued.word](reply, outgoing.key, attempts, reason) from pursued.error


def reply_of(
    received: Received, key: str | None, attempts: int, pursued: Pursued, recorded: bool
) -> Reply:
    headers = httpx.Headers(list(received.headers))
    return Reply(received.status, headers, received.body, key, attempts, pursued.replayed, recorded)


def new_key() -> str:
    """A UUID of version 7, which nobody has used."""
    drawn = (int(time.time() * 1000) << 80) | secrets.randbits(80)
    drawn = drawn & ~(0xF << 76) | 7 << 76
    drawn = drawn & ~(0x3 << 62) | 2 << 62
    digits = f"{drawn:032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class Client(Caller):
    """A client that retries what it may, and finishes what it has begun.

    With a journal, `name` names what should happen once: the same name never has a second effect.
    `headers` go with every request and are never written down.
    """

    def __init__(
        self,
        journal: str | os.PathLike[str] | None = None,
        *,
        http: httpx.Client | None = None,
        headers: Mapping[str, str] | None = None,
        deadline: float = DEADLINE_SECONDS,
        attempt_timeout: float = ATTEMPT_SECONDS,
        attempts_max: int = ATTEMPTS_MAX,
    ) -> None:
        super().__init__(journal, headers, deadline, attempt_timeout, attempts_max)
        self.http = http or httpx.Client()
        self.wire = HttpxWire(
            lambda request: self.http.send(request, stream=True, follow_redirects=False)
        )

    async def write(self, note: Callable[[], T]) -> T:
        return note()

    def send(
        self,
        method: str,
        url: str,
        *,
        name: str | None = None,
        key: str | None = None,
        json: Any = None,
        content: bytes | str = b"",
        headers: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> Reply:
        """Sends a request until it is done, or raises a `CallError` that says what is known."""
        outgoing = self.outgoing(method, url, json, content, headers, key)
        return run(self.call(outgoing, name, deadline))

    def post(self, url: str, **request: Any) -> Reply:
        """`send` with POST."""
        return self.send("POST", url, **request)

    def resume(self) -> dict[str, Reply | HapaxError]:
        """Finishes what earlier runs began and nobody pursues; what came of each, by its name."""
        return run(self.resume_all())

    def take_up(self, name: str, deadline: float | None = None) -> Reply:
        """Asks again for an operation by its name alone."""
        return run(self.take_up_named(name, deadline))

    def forget(self, name: str) -> None:
        """Forgets an operation that will never be sent again."""
        self.needs_journal().forget(name)

    def purge(self) -> int:
        """Removes what ended more than seven days ago; how much."""
        return self.needs_journal().purge(time.time() - RETENTION_SECONDS)

    def close(self) -> None:
        self.http.close()
        if self.journal is not None:
            self.journal.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient(Caller):
    """The same for asyncio."""

    def __init__(
        self,
        journal: str | os.PathLike[str] | None = None,
        *,
        http: httpx.AsyncClient | None = None,
        headers: Mapping[str, str] | None = None,
        deadline: float = DEADLINE_SECONDS,
        attempt_timeout: float = ATTEMPT_SECONDS,
        attempts_max: int = ATTEMPTS_MAX,
    ) -> None:
        super().__init__(journal, headers, deadline, attempt_timeout, attempts_max)
        self.http = http or httpx.AsyncClient()
        self.wire = AsyncHttpxWire(
            lambda request: self.http.send(request, stream=True, follow_redirects=False)
        )

    async def write(self, note: Callable[[], T]) -> T:
        return await asyncio.to_thread(note)

    async def send(
        self,
        method: str,
        url: str,
        *,
        name: str | None = None,
        key: str | None = None,
        json: Any = None,
        content: bytes | str = b"",
        headers: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> Reply:
        """Sends a request until it is done, or raises a `CallError` that says what is known."""
        return await self.call(
            self.outgoing(method, url, json, content, headers, key), name, deadline
        )

    async def post(self, url: str, **request: Any) -> Reply:
        """`send` with POST."""
        return await self.send("POST", url, **request)

    async def resume(self) -> dict[str, Reply | HapaxError]:
        """Finishes what earlier runs began and nobody pursues; what came of each, by its name."""
        return await self.resume_all()

    async def take_up(self, name: str, deadline: float | None = None) -> Reply:
        """Asks again for an operation by its name alone."""
        return await self.take_up_named(name, deadline)

    async def forget(self, name: str) -> None:
        """Forgets an operation that will never be sent again."""
        journal = self.needs_journal()
        await self.write(lambda: journal.forget(name))

    async def purge(self) -> int:
        """Removes what ended more than seven days ago; how much."""
        journal = self.needs_journal()
        return await self.write(lambda: journal.purge(time.time() - RETENTION_SECONDS))

    async def close(self) -> None:
        await self.http.aclose()
        if self.journal is not None:
            self.journal.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self.close()
