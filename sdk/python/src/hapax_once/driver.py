"""What the core asks of a driver.

The core is written once, with `await`. A blocking driver implements the same methods and never
suspends in one, so that `run` gets through without an event loop.
"""

from __future__ import annotations

import asyncio
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager
from functools import cache
from types import TracebackType
from typing import Any, Generic, TypeVar

from .errors import Invalid

C = TypeVar("C")
T = TypeVar("T")
Row = Any

LOST = "08006"
"""The SQLSTATE of a connection that was lost; drivers tell of it without one."""


class Link(ABC, Generic[C]):
    """A connection of a driver, as the core uses it."""

    def __init__(self, connection: C, context: Any = None) -> None:
        self.connection = connection
        self.context = context
        """What ends its transaction, if we began it."""

    @abstractmethod
    async def is_in_transaction(self) -> bool:
        """Whether what is sent now is part of a transaction, or begins one."""

    @abstractmethod
    async def fetch(self, statement: str, *args: object) -> Row:
        """The row of a statement that has one."""

    @abstractmethod
    async def execute(self, statement: str, *args: object) -> None:
        """Runs a statement whose rows do not matter."""

    def savepoint(self, name: str) -> AbstractAsyncContextManager[None]:
        """Takes back what is done inside if that raises. It is not released at the end."""
        return Savepoint(self, name)

    async def release(self, name: str) -> None:
        """Forgets a savepoint, and those after it."""
        await self.execute(f"RELEASE SAVEPOINT {name}")


class Savepoint(AbstractAsyncContextManager[None]):
    """A savepoint by its statements, for drivers that need not know of it."""

    def __init__(self, link: Link[Any], name: str) -> None:
        self.link = link
        self.name = name

    async def __aenter__(self) -> None:
        await self.link.execute(f"SAVEPOINT {self.name}")

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, Exception):
            await self.link.execute(f"ROLLBACK TO SAVEPOINT {self.name}")


class Driver(ABC, Generic[C]):
    """How a driver opens transactions, and what its errors mean."""

    lost: tuple[type[BaseException], ...]
    """What it raises, without a SQLSTATE, when the connection is lost."""
    is_schema_known = False
    """Whether the version of the schema was looked at."""

    @abstractmethod
    async def begin(self) -> Link[C]:
        """Takes a connection, and begins a transaction on it."""

    @abstractmethod
    async def end(self, link: Link[C], *raised: Any) -> None:
        """Commits, or rolls back if something was raised, and gives the connection back.

        What was raised is given as to `__exit__`.
        """

    @abstractmethod
    def link(self, connection: C) -> Link[C]:
        """The caller's connection."""

    @abstractmethod
    async def pause(self, seconds: float) -> None:
        """Waits."""

    def sqlstate(self, error: BaseException) -> str | None:
        """The SQLSTATE of an error, or of one it was raised from."""
        chain = list(causes(error))
        for cause in chain:
            code = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None)
            if isinstance(code, str):
                return code
        return LOST if any(isinstance(cause, self.lost) for cause in chain) else None


class BlockingDriver(Driver[C]):
    """A driver whose methods never suspend."""

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)


class AsyncDriver(Driver[C]):
    """A driver for asyncio."""

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def run(steps: Coroutine[Any, Any, T]) -> T:
    """Runs what never suspends."""
    try:
        steps.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    steps.close()
    raise Invalid("the work is asynchronous, and the database is not: use AsyncDatabase")


def causes(error: BaseException) -> Iterator[BaseException]:
    """An error, and those that it was raised from."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__


@cache
def formatted(statement: str) -> str:
    """The statement with parameters as psycopg and Django spell them."""
    return re.sub(r"\$\d+", "%s", statement)
