"""What `once`, `within` and `emit` do, whichever the driver."""

from __future__ import annotations

import json
import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, NamedTuple, TypeVar

from . import statements
from .answer import Answer, Refused
from .driver import Driver, Link, Row
from .errors import (
    Busy,
    Conflict,
    Gone,
    HapaxError,
    InDoubt,
    Invalid,
    Mismatch,
    Nested,
    NotRetained,
    OutcomeUnknown,
    Unavailable,
    UnknownDecision,
)
from .operation import Operation, Options, Request
from .unit import Undo, Unit

C = TypeVar("C")
Work = Callable[[C], Answer | Awaitable[Answer]]

TRIES_MAX = 6
CONFLICT_PAUSE_SECONDS_MAX = 0.02
LOST_PAUSE_SECONDS_MAX = 0.2

AROUND_WORK = "hapax_work"
AROUND_OPERATION = "hapax_operation"


class Call(NamedTuple):
    """An operation, as it is asked for."""

    operation: Operation
    request: Request
    options: Options


@dataclass(eq=False)
class UnderWay:
    """An operation whose work is being done."""

    driver: Driver[Any]
    operation: Operation
    is_over: bool = False


UNDER_WAY: ContextVar[tuple[UnderWay, ...]] = ContextVar("hapax_under_way", default=())
"""What the code that runs is inside of; a task that outlives it is not any more."""


@contextmanager
def under_way(driver: Driver[Any], operation: Operation) -> Iterator[None]:
    """Refuses what is inside of the work of another call, and would be committed without it."""
    outer = UNDER_WAY.get()
    for other in outer:
        if not other.is_over and (other.driver is driver or other.operation == operation):
            raise Nested
    this = UnderWay(driver, operation)
    token = UNDER_WAY.set((*outer, this))
    try:
        yield
    finally:
        this.is_over = True
        UNDER_WAY.reset(token)


async def once(driver: Driver[C], call: Call, work: Work[C]) -> Answer:
    """Runs the work in a transaction of its own, once for its operation."""
    with under_way(driver, call.operation):
        return await pursue(driver, call, work)


async def pursue(driver: Driver[C], call: Call, work: Work[C]) -> Answer:
    doubt: OutcomeUnknown | None = None
    stopped: HapaxError = Conflict()
    for attempt in range(TRIES_MAX):
        if attempt > 0:
            longest = CONFLICT_PAUSE_SECONDS_MAX if doubt is None else LOST_PAUSE_SECONDS_MAX
            await driver.pause(random.uniform(0, longest * 2 ** (attempt - 1)))
        try:
            return await once_tried(Unit(driver), call, work)
        except Conflict as conflict:
            stopped = conflict
        except OutcomeUnknown as unknown:
            doubt = unknown
        except Unavailable:
            # Before a COMMIT was sent nothing happened; after one, somebody has to be asked.
            if doubt is None:
                raise
    raise doubt or stopped


async def once_tried(unit: Unit[C], call: Call, work: Work[C]) -> Answer:
    try:
        async with unit as link:
            if call.options.isolation is not None:
                await link.execute(f"SET TRANSACTION ISOLATION LEVEL {call.options.isolation}")
            await unit.know_schema(link)
            return await operate(unit, link, call, work)
    except Undo as undo:
        return undo.answer


async def within(driver: Driver[C], connection: C, call: Call, work: Work[C]) -> Answer:
    """Runs the work in the caller's transaction, once for its operation."""
    unit = Unit(driver)
    link = await unit.callers(connection)
    with unit.told():
        await unit.know_schema(link)
        try:
            async with link.savepoint(AROUND_OPERATION):
                answer = await operate(unit, link, call, work)
        except Undo as undo:
            answer = undo.answer
        await link.release(AROUND_OPERATION)
    return answer


async def operate(unit: Unit[C], link: Link[C], call: Call, work: Work[C]) -> Answer:
    """Begins, does the work, ends it. Whatever is raised has to be rolled back, `Undo` too."""
    row = await begin(unit, link, call)
    decision, operation, fence, expires_at = row[0], row[1], row[2], row[8]
    if decision != "execute":
        raise refusal(row)
    end = statements.FINISH
    try:
        async with link.savepoint(AROUND_WORK):
            answer = checked(await unit.call(work, link.connection))
            ending = answer.ending
            if ending == "rollback":
                raise Undo(answer.given())
            if ending == "fail":
                raise Refused(answer)
    except Refused as refused:
        answer, end = refused.answer, statements.FAIL
    headers = json.dumps(dict(answer.headers))
    ended = link.execute(end, operation, fence, answer.status, headers, answer.body)
    await unit.ours(ended)
    return answer.given(instant(expires_at))


def checked(answer: object) -> Answer:
    """What the work returned, if it is an answer."""
    if not isinstance(answer, Answer):
        raise Invalid(f"work returns an Answer, not {type(answer).__name__}")
    return answer


def refusal(row: Row) -> Exception:
    """Why nothing is run; an answer that is replayed is an `Undo`."""
    decision, _operation, _fence, status, headers, body, retry_after, differs, expires_at = row
    match decision:
        case "replay":
            if body is None:
                return NotRetained(status)
            return Undo(Answer(status, json.loads(headers), bytes(body), True, instant(expires_at)))
        case "busy":
            return Busy(retry_after)
        case "mismatch":
            return Mismatch(differs)
        case "in_doubt":
            return InDoubt()
        case "gone":
            return Gone()
        case unknown:
            return UnknownDecision(unknown)


def instant(seconds: float | None) -> datetime | None:
    """Seconds since 1970 as a time."""
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc)


async def begin(unit: Unit[C], link: Link[C], call: Call) -> Row:
    """Asks what to do about an operation."""
    operation, request, options = call.operation, call.request, call.options
    row = link.fetch(
        statements.BEGIN,
        operation.tenant,
        operation.scope,
        operation.key,
        request.body.encode() if isinstance(request.body, str) else request.body,
        request.method,
        request.path,
        request.query,
        options.retention.total_seconds(),
        options.tombstone.total_seconds(),
        options.wait.total_seconds(),
    )
    return await unit.ours(row)


@dataclass(frozen=True)
class Event:
    """What is published if its transaction commits."""

    topic: str
    key: str
    payload: bytes | str
    headers: Mapping[str, str]
    content_type: str
    id: str | None

    def __post_init__(self) -> None:
        if not isinstance(self.payload, (bytes, str)):
            raise Invalid(f"a payload is bytes or text, not {type(self.payload).__name__}")
        names = (self.topic, self.key, self.content_type, *self.headers, *self.headers.values())
        if not all(isinstance(name, str) for name in names):
            raise Invalid("topic, key, content type and headers of an event are texts")


async def emit(driver: Driver[C], connection: C, event: Event) -> str:
    """Emits an event in the caller's transaction, and returns its id."""
    unit = Unit(driver)
    payload = event.payload.encode() if isinstance(event.payload, str) else event.payload
    headers = json.dumps(dict(event.headers))
    args = (event.topic, event.key, payload, headers, event.content_type, event.id)
    link = await unit.callers(connection)
    (event_id,) = await unit.ours(link.fetch(statements.EMIT, *args))
    return str(event_id)
