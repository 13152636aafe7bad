"""psycopg 3: `Database` on a `ConnectionPool`, `AsyncDatabase` on an `AsyncConnectionPool`."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from . import database
from .database import OPTIONS
from .driver import AsyncDriver, BlockingDriver, Link, Row, formatted
from .operation import Options

LOST = (psycopg.OperationalError, psycopg.InterfaceError)


class Database(database.Database[Connection[Any]]):
    """A database behind a pool of psycopg connections."""

    def __init__(self, pool: ConnectionPool[Any], options: Options = OPTIONS) -> None:
        super().__init__(PoolDriver(pool), options)


class AsyncDatabase(database.AsyncDatabase[AsyncConnection[Any]]):
    """A database behind a pool of psycopg connections for asyncio."""

    def __init__(self, pool: AsyncConnectionPool[Any], options: Options = OPTIONS) -> None:
        super().__init__(AsyncPoolDriver(pool), options)


class PoolDriver(BlockingDriver[Connection[Any]]):
    lost = LOST

    def __init__(self, pool: ConnectionPool[Any]) -> None:
        self.pool = pool

    async def begin(self) -> Link[Connection[Any]]:
        connection = self.pool.getconn()
        context = connection.transaction()
        try:
            context.__enter__()
        except BaseException:
            self.pool.putconn(connection)
            raise
        return ConnectionLink(connection, context)

    async def end(self, link: Link[Connection[Any]], *raised: Any) -> None:
        try:
            link.context.__exit__(*raised)
        finally:
            self.pool.putconn(link.connection)

    def link(self, connection: Connection[Any]) -> Link[Connection[Any]]:
        return ConnectionLink(connection)


class AsyncPoolDriver(AsyncDriver[AsyncConnection[Any]]):
    lost = LOST

    def __init__(self, pool: AsyncConnectionPool[Any]) -> None:
        self.pool = pool

    async def begin(self) -> Link[AsyncConnection[Any]]:
        connection = await self.pool.getconn()
        context = connection.transaction()
        try:
            await context.__aenter__()
        except BaseException:
            await self.pool.putconn(connection)
            raise
        return AsyncConnectionLink(connection, context)

    async def end(self, link: Link[AsyncConnection[Any]], *raised: Any) -> None:
        try:
            await link.context.__aexit__(*raised)
        finally:
            await self.pool.putconn(link.connection)

    def link(self, connection: AsyncConnection[Any]) -> Link[AsyncConnection[Any]]:
        return AsyncConnectionLink(connection)


class ConnectionLink(Link[Connection[Any]]):
    async def is_in_transaction(self) -> bool:
        return is_in_transaction(self.connection)

    async def fetch(self, statement: str, *args: object) -> Row:
        cursor = self.connection.cursor(row_factory=tuple_row)
        return cursor.execute(formatted(statement), args).fetchone()

    async def execute(self, statement: str, *args: object) -> None:
        self.connection.execute(formatted(statement), args or None)


class AsyncConnectionLink(Link[AsyncConnection[Any]]):
    async def is_in_transaction(self) -> bool:
        return is_in_transaction(self.connection)

    async def fetch(self, statement: str, *args: object) -> Row:
        cursor = self.connection.cursor(row_factory=tuple_row)
        return await (await cursor.execute(formatted(statement), args)).fetchone()

    async def execute(self, statement: str, *args: object) -> None:
        await self.connection.execute(formatted(statement), args or None)


def is_in_transaction(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    """Without autocommit the first statement begins a transaction."""
    is_idle = connection.info.transaction_status == TransactionStatus.IDLE
    return not (connection.autocommit and is_idle)
