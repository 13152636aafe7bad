"""The doors of a database: `Database` for blocking drivers, `AsyncDatabase` for asyncio."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Generic, TypeVar

from . import core, deliveries, unit
from .answer import Answer
from .driver import Driver, run
from .operation import Operation, Options, Request

C = TypeVar("C")

OPTIONS = Options()
NO_HEADERS: Mapping[str, str] = {}
JSON = "application/json"
MESSAGES = "messages"
MESSAGE_RETENTION = timedelta(days=7)
MESSAGE_WAIT = timedelta(seconds=2)


class Database(Generic[C]):
    """A database, through a blocking driver."""

    def __init__(self, driver: Driver[C], options: Options = OPTIONS) -> None:
        self.driver = driver
        self.options = options

    def once(
        self,
        operation: Operation,
        work: Callable[[C], Answer],
        request: Request | bytes | str = b"",
        options: Options | None = None,
    ) -> Answer:
        """Runs the work in a transaction of its own; later calls hear what the first one said."""
        call = core.Call(operation, as_request(request), options or self.options)
        return run(core.once(self.driver, call, work))

    def within(
        self,
        connection: C,
        operation: Operation,
        work: Callable[[C], Answer],
        request: Request | bytes | str = b"",
        options: Options | None = None,
    ) -> Answer:
        """The same inside of a transaction that the caller has begun and commits."""
        call = core.Call(operation, as_request(request), options or self.options)
        return run(core.within(self.driver, connection, call, work))

    def emit(
        self,
        connection: C,
        topic: str,
        key: str,
        payload: bytes | str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        content_type: str = JSON,
        event_id: str | None = None,
    ) -> str:
        """An event that is published if the transaction of this connection commits; its id."""
        event = core.Event(topic, key, payload, headers, content_type, event_id)
        return run(core.emit(self.driver, connection, event))

    def first_delivery(
        self,
        connection: C,
        consumer: str,
        message_id: str,
        content: bytes | str = b"",
        *,
        tenant: str = MESSAGES,
        retention: timedelta = MESSAGE_RETENTION,
        wait: timedelta = MESSAGE_WAIT,
    ) -> bool:
        """Whether the message is acted on for the first time, in the transaction of the writes."""
        delivery = deliveries.Delivery(consumer, message_id, content, tenant, retention, wait)
        return run(deliveries.first(self.driver, connection, delivery))

    def check_schema(self) -> None:
        """Looks at the schema anew, and raises if it does not fit this package."""
        run(unit.check_schema(self.driver))


class AsyncDatabase(Generic[C]):
    """A database, through a driver for asyncio."""

    def __init__(self, driver: Driver[C], options: Options = OPTIONS) -> None:
        self.driver = driver
        self.options = options

    async def once(
        self,
        operation: Operation,
        work: Callable[[C], Awaitable[Answer]],
        request: Request | bytes | str = b"",
        options: Options | None = None,
    ) -> Answer:
        """Runs the work in a transaction of its own; later calls hear what the first one said."""
        call = core.Call(operation, as_request(request), options or self.options)
        return await core.once(self.driver, call, work)

    async def within(
        self,
        connection: C,
        operation: Operation,
        work: Callable[[C], Awaitable[Answer]],
        request: Request | bytes | str = b"",
        options: Options | None = None,
    ) -> Answer:
        """The same inside of a transaction that the caller has begun and commits."""
        call = core.Call(operation, as_request(request), options or self.options)
        return await core.within(self.driver, connection, call, work)

    async def emit(
        self,
        connection: C,
        topic: str,
        key: str,
        payload: bytes | str,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        content_type: str = JSON,
        event_id: str | None = None,
    ) -> str:
        """An event that is published if the transaction of this connection commits; its id."""
        event = core.Event(topic, key, payload, headers, content_type, event_id)
        return await core.emit(self.driver, connection, event)

    async def first_delivery(
        self,
        connection: C,
        consumer: str,
        message_id: str,
        content: bytes | str = b"",
        *,
        tenant: str = MESSAGES,
        retention: timedelta = MESSAGE_RETENTION,
        wait: timedelta = MESSAGE_WAIT,
    ) -> bool:
        """Whether the message is acted on for the first time, in the transaction of the writes."""
        delivery = deliveries.Delivery(consumer, message_id, content, tenant, retention, wait)
        return await deliveries.first(self.driver, connection, delivery)

    async def check_schema(self) -> None:
        """Looks at the schema anew, and raises if it does not fit this package."""
        await unit.check_schema(self.driver)


def as_request(request: Request | bytes | str) -> Request:
    """Bytes or a text as a request that has nothing else."""
    return request if isinstance(request, Request) else Request(request)
