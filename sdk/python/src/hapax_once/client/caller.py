"""What both clients do: one key for all attempts, one of four words for what came of them."""

from __future__ import annotations

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
from typing import Any, TypeVar

import httpx

from ..errors import HapaxError, Invalid
from ..key import HEADER, quoted_key
from ..operation import KEY_BYTES_MAX, check_name
from .journal import Entry, Journal
from .pursuit import READING_METHODS, Outgoing, Patience, Pursued, Received, Wire, pursue
from .reading import History, Word
from .secret import is_secret_header

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
