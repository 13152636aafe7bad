"""A transaction of ours with code of the caller in it, and what its errors mean."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Generic, NoReturn, TypeVar

from . import statements
from .answer import Answer
from .driver import LOST, Driver, Link
from .errors import (
    Conflict,
    HapaxError,
    NotInTransaction,
    OutcomeUnknown,
    SchemaVersion,
    Unavailable,
    of_sqlstate,
)

C = TypeVar("C")
T = TypeVar("T")

NETWORK = (OSError, TimeoutError, asyncio.TimeoutError)
"""What asyncio raises for a connection that cannot be made or is lost."""


class Undo(Exception):
    """Rolls back, and is the answer all the same."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


class Unit(Generic[C]):
    """One transaction, committed at the end of `async with`, rolled back if anything is raised.

    What the caller's code raises goes on as it is, unless it is about this transaction.
    """

    def __init__(self, driver: Driver[C]) -> None:
        self.driver = driver
        self.raised: Exception | None = None
        self.is_committing = False

    async def __aenter__(self) -> Link[C]:
        try:
            self.link = await self.driver.begin()
        except Exception as error:
            self.tell(error)
        return self.link

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.is_committing = error is None
        try:
            await self.driver.end(self.link, kind, error, traceback)
        except Exception as ended:
            error = ended
        if isinstance(error, Exception):
            self.tell(error)

    def tell(self, error: Exception) -> NoReturn:
        """Says what an error means that was raised in the transaction, or at one of its ends."""
        if isinstance(error, (HapaxError, Undo)):
            raise error
        sqlstate = self.driver.sqlstate(error)
        is_callers = error is self.raised
        if sqlstate is None and not is_callers and isinstance(error, NETWORK):
            sqlstate = LOST
        told = of_sqlstate(sqlstate, str(error))
        if self.is_committing and isinstance(told, Unavailable):
            raise OutcomeUnknown(str(error)) from error
        if isinstance(told, (Conflict, Unavailable)):
            raise told from error
        if told is None or is_callers or self.is_committing:
            raise error
        raise told from error

    async def call(self, code: Callable[..., Any], *args: object) -> Any:
        """Calls the caller's code, and notes what it raises."""
        try:
            result = code(*args)
            return await result if hasattr(result, "__await__") else result
        except Exception as error:
            self.raised = error
            raise

    async def ours(self, statement: Awaitable[T]) -> T:
        """What one of our own statements says; what it fails with is an error of ours, too."""
        try:
            return await statement
        except Exception as error:
            told = of_sqlstate(self.driver.sqlstate(error), str(error))
            if told is None:
                raise
            raise told from error

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raises errors of the database as ours, but for what the caller's code raised."""
        try:
            yield
        except (HapaxError, Undo):
            raise
        except Exception as error:
            told = of_sqlstate(self.driver.sqlstate(error), str(error))
            if told is None or error is self.raised:
                raise
            raise told from error

    async def look_at_schema(self, link: Link[C]) -> None:
        """Refuses a schema that does not fit."""
        version, works_with = await self.ours(link.fetch(statements.SCHEMA_VERSION))
        needed = statements.SCHEMA_VERSION_NEEDED
        if version < needed or works_with > needed:
            raise SchemaVersion(needed, version, works_with)
        self.driver.is_schema_known = True

    async def know_schema(self, link: Link[C]) -> None:
        """Looks at the schema, once for each pool."""
        if not self.driver.is_schema_known:
            await self.look_at_schema(link)

    async def callers(self, connection: C) -> Link[C]:
        """The caller's connection, which must be in a transaction.

        The driver is asked: to the database, a statement with parameters in autocommit looks like
        one of a longer transaction.
        """
        link = self.driver.link(connection)
        if not await link.is_in_transaction():
            raise NotInTransaction
        return link


async def check_schema(driver: Driver[C]) -> None:
    """Looks at the schema anew."""
    unit = Unit(driver)
    async with unit as link:
        await unit.look_at_schema(link)
