"""SQLAlchemy 2: `Database` on an `Engine` or `sessionmaker`, `AsyncDatabase` on those for asyncio.

Work on an engine gets a `Connection`, work on a sessionmaker a `Session`.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, TypeVar, overload

from sqlalchemy import Connection, Engine, TextClause, exc, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, AsyncSession, async_sessionmaker
from sqlalchemy.orm import Session, sessionmaker

from . import database
from .database import OPTIONS
from .driver import AsyncDriver, BlockingDriver, Link, Row
from .operation import Options

C = TypeVar("C", Connection, Session)
A = TypeVar("A", AsyncConnection, AsyncSession)

LOST = (exc.OperationalError, exc.InterfaceError, exc.TimeoutError)


class Database(database.Database[C]):
    """A database behind an engine or a sessionmaker."""

    @overload
    def __init__(self: Database[Connection], source: Engine, options: Options = ...) -> None: ...
    @overload
    def __init__(
        self: Database[Session], source: sessionmaker[Session], options: Options = ...
    ) -> None: ...
    def __init__(self, source: Any, options: Options = OPTIONS) -> None:
        super().__init__(SourceDriver(source), options)


class AsyncDatabase(database.AsyncDatabase[A]):
    """A database behind an engine or a sessionmaker for asyncio."""

    @overload
    def __init__(
        self: AsyncDatabase[AsyncConnection], source: AsyncEngine, options: Options = ...
    ) -> None: ...
    @overload
    def __init__(
        self: AsyncDatabase[AsyncSession],
        source: async_sessionmaker[AsyncSession],
        options: Options = ...,
    ) -> None: ...
    def __init__(self, source: Any, options: Options = OPTIONS) -> None:
        super().__init__(AsyncSourceDriver(source), options)


class SourceDriver(BlockingDriver[Any]):
    lost = LOST

    def __init__(self, source: Engine | sessionmaker[Session]) -> None:
        self.source = source

    async def begin(self) -> Link[Any]:
        context = self.source.begin()
        return self.link(context.__enter__(), context)

    async def end(self, link: Link[Any], *raised: Any) -> None:
        link.context.__exit__(*raised)

    def link(self, connection: Connection | Session, context: Any = None) -> Link[Any]:
        if isinstance(connection, Session):
            return SessionLink(connection, context)
        return ConnectionLink(connection, context)


class AsyncSourceDriver(AsyncDriver[Any]):
    lost = LOST

    def __init__(self, source: AsyncEngine | async_sessionmaker[AsyncSession]) -> None:
        self.source = source

    async def begin(self) -> Link[Any]:
        context = self.source.begin()
        return self.link(await context.__aenter__(), context)

    async def end(self, link: Link[Any], *raised: Any) -> None:
        await link.context.__aexit__(*raised)

    def link(self, connection: AsyncConnection | AsyncSession, context: Any = None) -> Link[Any]:
        if isinstance(connection, AsyncSession):
            return AsyncSessionLink(connection, context)
        return AsyncConnectionLink(connection, context)


class ConnectionLink(Link[Connection]):
    async def is_in_transaction(self) -> bool:
        return is_in_transaction(self.connection)

    async def fetch(self, statement: str, *args: object) -> Row:
        return self.connection.execute(clause(statement), named(args)).first()

    async def execute(self, statement: str, *args: object) -> None:
        self.connection.execute(clause(statement), named(args))


class AsyncConnectionLink(Link[AsyncConnection]):
    async def is_in_transaction(self) -> bool:
        return is_in_transaction(self.connection.sync_connection)

    async def fetch(self, statement: str, *args: object) -> Row:
        return (await self.connection.execute(clause(statement), named(args))).first()

    async def execute(self, statement: str, *args: object) -> None:
        await self.connection.execute(clause(statement), named(args))


class SessionLink(Link[Session]):
    async def is_in_transaction(self) -> bool:
        return is_in_transaction(self.connection.connection())

    async def fetch(self, statement: str, *args: object) -> Row:
        return self.connection.execute(clause(statement), named(args)).first()

    async def execute(self, statement: str, *args: object) -> None:
        self.connection.execute(clause(statement), named(args))

    @asynccontextmanager
    async def savepoint(self, name: str) -> AsyncIterator[None]:
        # The session must know of it: what was added and not yet flushed is taken back, too.
        with self.connection.begin_nested():
            yield

    async def release(self, name: str) -> None:
        """`begin_nested` has done so."""


class AsyncSessionLink(Link[AsyncSession]):
    async def is_in_transaction(self) -> bool:
        return is_in_transaction((await self.connection.connection()).sync_connection)

    async def fetch(self, statement: str, *args: object) -> Row:
        return (await self.connection.execute(clause(statement), named(args))).first()

    async def execute(self, statement: str, *args: object) -> None:
        await self.connection.execute(clause(statement), named(args))

    @asynccontextmanager
    async def savepoint(self, name: str) -> AsyncIterator[None]:
        async with self.connection.begin_nested():
            yield

    async def release(self, name: str) -> None:
        """`begin_nested` has done so."""


def is_in_transaction(connection: Connection | None) -> bool:
    """Without autocommit the first statement begins a transaction."""
    if connection is None:
        return False
    dbapi_connection = connection.connection.dbapi_connection
    return dbapi_connection is not None and not connection.dialect.detect_autocommit_setting(
        dbapi_connection
    )


@cache
def clause(statement: str) -> TextClause:
    """The statement with parameters as SQLAlchemy spells them; a cast must not touch one."""
    return text(re.sub(r"\$(\d+)", r":p\1 ", statement))


def named(args: tuple[object, ...]) -> dict[str, object]:
    return {f"p{number}": value for number, value in enumerate(args, 1)}
