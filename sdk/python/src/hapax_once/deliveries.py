"""One delivery of a message: whether it is the first, and what its broker is to hear."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

from . import statements
from .driver import Driver, Link
from .errors import (
    Busy,
    Conflict,
    ContentDiffers,
    Invalid,
    NoMessageId,
    OutcomeUnknown,
    Unavailable,
)
from .operation import KEY_BYTES_MAX, SCOPE_BYTES_MAX, TENANT_BYTES_MAX, check_name
from .unit import Unit

C = TypeVar("C")

PAUSE_SECONDS = 1.0
PAUSE_SECONDS_MAX = 300.0
BUSY_PAUSE_SECONDS = 1.0
OUTAGE_PAUSE_SECONDS = 5.0
REASON_CHARACTERS_MAX = 1000

ID_HEADERS = ("ce-id", "ce_id", "cloudevents:id", "cloudevents_id", "nats-msg-id", "message_id")
KEY_HEADERS = ("ce-subject", "ce_subject", "cloudevents:subject", "cloudevents_subject")


@dataclass(frozen=True)
class Delivery:
    """A message as a consumer knows it."""

    consumer: str
    message_id: str
    content: bytes | str
    tenant: str
    retention: timedelta
    wait: timedelta

    def __post_init__(self) -> None:
        check_name("consumer", self.consumer, SCOPE_BYTES_MAX)
        check_name("message id", self.message_id, KEY_BYTES_MAX)
        check_name("tenant", self.tenant, TENANT_BYTES_MAX)
        if not isinstance(self.content, (bytes, str)):
            raise Invalid(
                f"the content of a message is bytes or text, not {type(self.content).__name__}"
            )

    @property
    def payload(self) -> bytes:
        return self.content.encode() if isinstance(self.content, str) else self.content


async def first(driver: Driver[C], connection: C, delivery: Delivery) -> bool:
    """Whether this is the first delivery, asked in the caller's transaction."""
    unit = Unit(driver)
    return await is_first(unit, await unit.callers(connection), delivery)


async def is_first(unit: Unit[C], link: Link[C], delivery: Delivery) -> bool:
    asked = link.fetch(
        statements.FIRST_DELIVERY,
        delivery.consumer,
        delivery.message_id,
        delivery.payload,
        delivery.tenant,
        delivery.retention.total_seconds(),
        delivery.wait.total_seconds(),
    )
    (answer,) = await unit.ours(asked)
    return bool(answer)


class Failed(Exception):
    """Raised by a handler that can never act on the message: it is not tried again."""


@dataclass(frozen=True)
class Message:
    """A message as it came from its broker."""

    id: str | None
    content: bytes = b""
    key: str | None = None
    source: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def received(
        cls,
        content: bytes,
        headers: Mapping[str, str],
        *,
        named: str | None = None,
        broker_id: str | None = None,
        key: str | None = None,
        source: str = "",
    ) -> Message:
        """A message by the name that the caller, its sender or else its broker gives it."""
        message_id = named or first_header(headers, ID_HEADERS) or broker_id
        return cls(message_id, content, key or first_header(headers, KEY_HEADERS), source, headers)


def first_header(headers: Mapping[str, str], names: Sequence[str]) -> str | None:
    values = {name.lower(): value for name, value in headers.items()}
    return next((values[name] for name in names if name in values), None)


@dataclass(frozen=True)
class Outcome:
    """What the broker is to hear."""

    is_done: bool
    """Acknowledge it; otherwise it has to come again."""
    pause: float = 0.0
    """After how many seconds it should come again."""
    acted: bool = False
    """Whether the handler was called."""


@dataclass(frozen=True)
class Terms:
    """How a consumer treats its messages."""

    name: str
    attempts_max: int = 10
    tenant: str = "messages"
    retention: timedelta = timedelta(days=7)
    wait: timedelta = timedelta(seconds=2)
    """How long a delivery waits for another one of its message, before it is left to come again."""

    def __post_init__(self) -> None:
        if type(self.attempts_max) is not int or self.attempts_max < 1:
            raise Invalid(f"a message is tried once at least, not {self.attempts_max!r} times")


Handler = Callable[[C, Message], Any]


async def deliver(
    driver: Driver[C], terms: Terms, handler: Handler[C], message: Message
) -> Outcome:
    """Hands a message to its handler in a transaction that remembers it."""
    if message.id is None:
        raise NoMessageId
    try:
        delivery = Delivery(
            terms.name, message.id, message.content, terms.tenant, terms.retention, terms.wait
        )
    except Invalid as invalid:
        raise NoMessageId(str(invalid)) from invalid
    unit, acted = Unit(driver), False
    try:
        async with unit as link:
            await unit.know_schema(link)
            if await is_first(unit, link, delivery):
                acted = True
                await unit.call(handler, link.connection, message)
        return Outcome(True, acted=acted)
    except (Busy, Conflict):
        return Outcome(False, BUSY_PAUSE_SECONDS, acted)
    except (Unavailable, OutcomeUnknown):
        return Outcome(False, OUTAGE_PAUSE_SECONDS, acted)
    except Exception as error:
        if error is not unit.raised and not isinstance(error, ContentDiffers):
            raise
        failure = error
    return await fail(driver, terms, delivery, message, failure, acted)


async def fail(
    driver: Driver[Any],
    terms: Terms,
    delivery: Delivery,
    message: Message,
    error: Exception,
    acted: bool,
) -> Outcome:
    """Counts the attempt, in a transaction of its own."""
    reason = str(error) or type(error).__name__
    args = (
        delivery.consumer,
        delivery.message_id,
        delivery.payload,
        reason[:REASON_CHARACTERS_MAX].replace("\0", ""),
        terms.attempts_max,
        isinstance(error, Failed),
        message.key,
        message.source,
        json.dumps(dict(message.headers)),
        delivery.tenant,
        delivery.retention.total_seconds(),
        delivery.wait.total_seconds(),
    )
    unit = Unit(driver)
    try:
        async with unit as link:
            failing = link.fetch(statements.FAIL_DELIVERY, *args)
            attempts, is_over = await unit.ours(failing)
    except (Busy, Conflict, Unavailable, OutcomeUnknown):
        return Outcome(False, OUTAGE_PAUSE_SECONDS, acted)
    if is_over:
        return Outcome(True, acted=acted)
    return Outcome(False, pause_after(attempts), acted)


def pause_after(attempts: int) -> float:
    """A pause that grows with each attempt, and differs between messages that failed together."""
    longest = min(PAUSE_SECONDS * 2.0 ** min(attempts - 1, 20), PAUSE_SECONDS_MAX)
    return random.uniform(longest / 2, longest)
