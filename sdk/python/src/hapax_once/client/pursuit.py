"""One request on its way through its attempts."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .reading import History, Reading, Result, Word, cut_off, read

READING_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})

PAUSE_SECONDS = 0.1
PAUSE_SECONDS_MAX = 20.0
IN_FLIGHT_SECONDS = 1.0
RETRY_AFTER_SECONDS_MAX = 300.0
ATTEMPT_SECONDS_MIN = 0.001


@dataclass(frozen=True)
class Outgoing:
    """A request as it is sent, as often as it has to be."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    key: str | None

    @property
    def reads_only(self) -> bool:
        return self.method in READING_METHODS


@dataclass(frozen=True)
class Received:
    """An answer, whole."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes | None
    """None if it was too large to keep."""


class NotSent(Exception):
    """Nothing of the request left."""


class Unanswered(Exception):
    """It was sent, perhaps in part, and no complete answer came."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status
        """The status of an answer that broke off."""


class Wire(ABC):
    """How requests are sent. A blocking one never suspends."""

    @abstractmethod
    async def send(self, outgoing: Outgoing, seconds: float) -> Received:
        """One attempt; raises `NotSent` or `Unanswered`."""

    @abstractmethod
    async def pause(self, seconds: float) -> None: ...


@dataclass(frozen=True)
class Patience:
    """How long and how often."""

    deadline_seconds: float
    attempt_seconds: float
    attempts_max: int | None
    """None for as many as the deadline allows."""


@dataclass(frozen=True)
class Pursued:
    """What came of a request."""

    word: Word
    attempts: int
    received: Received | None
    replayed: bool
    error: Exception | None
    """Why there is no answer."""


async def pursue(
    wire: Wire,
    outgoing: Outgoing,
    patience: Patience,
    history: History,
    before_attempt: Callable[[int, float], Awaitable[None]],
) -> Pursued:
    """Sends a request until it is known what came of it, or there is no time left."""
    ends = time.monotonic() + patience.deadline_seconds
    attempts = failures = 0
    received: Received | None = None
    reading = Reading(Result.NOT_SENT)
    error: Exception | None = None
    while True:
        seconds = min(ends - time.monotonic(), patience.attempt_seconds)
        if seconds < ATTEMPT_SECONDS_MIN:
            break
        attempts += 1
        await before_attempt(attempts, seconds)
        received, reading, error = await attempt(wire, outgoing, seconds)
        history.note(reading)
        match reading.verdict:
            case "retry":
                failures += 1
                if failures == patience.attempts_max:
                    break
                pause = backoff(failures, reading.told_seconds)
            case "wait":
                pause = asked_for(reading.told_seconds) or random.uniform(
                    PAUSE_SECONDS, IN_FLIGHT_SECONDS
                )
            case _:
                break
        if pause >= ends - time.monotonic():
            break
        await wire.pause(pause)
    return Pursued(history.word, attempts, received, reading.replayed, error)


async def attempt(
    wire: Wire, outgoing: Outgoing, seconds: float
) -> tuple[Received | None, Reading, Exception | None]:
    told = (("hapax-deadline", str(int(seconds * 1000))), ("hapax-retry", "never"))
    headers = (*outgoing.headers, *told)
    sent = Outgoing(outgoing.method, outgoing.url, headers, outgoing.body, outgoing.key)
    try:
        received = await wire.send(sent, seconds)
    except NotSent as error:
        return None, Reading(Result.NOT_SENT), error
    except Unanswered as error:
        cut = Reading(Result.UNANSWERED) if error.status is None else cut_off(error.status)
        return None, cut, error
    first = {name.lower(): value for name, value in reversed(received.headers)}
    return received, read(received.status, first, received.body or b"", outgoing.key), None


def backoff(failures: int, told_seconds: float | None) -> float:
    """A pause that doubles, drawn by chance: those who failed together come back one by one."""
    longest = min(PAUSE_SECONDS * 2.0 ** min(failures - 1, 20), PAUSE_SECONDS_MAX)
    return max(random.uniform(0, longest), asked_for(told_seconds))


def asked_for(told_seconds: float | None) -> float:
    """What the server asks for and up to a quarter more, never less."""
    if told_seconds is None:
        return 0.0
    return min(told_seconds, RETRY_AFTER_SECONDS_MAX) * random.uniform(1.0, 1.25)
