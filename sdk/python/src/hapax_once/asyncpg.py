"""asyncpg: `AsyncDatabase` on a `Pool`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import asyncpg

from . import database
from .database import OPTIONS
from .driver import AsyncDriver, Link, Row
from .operation import Options

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Connection = asyncpg.Connection[Any] | PoolConnectionProxy[Any]
    Pool = asyncpg.Pool[Any]
else:
    Connection = asyncpg.Connection
    Pool = asyncpg.Pool


class AsyncDatabase(database.AsyncDatabase[Connection]):
    """A database behind a pool of asyncpg connections."""

    def __init__(self, pool: Pool, options: Options = OPTIONS) -> None:
        super().__init__(PoolDriver(pool), options)


class PoolDriver(AsyncDriver[Connection]):
    lost = (asyncpg.InterfaceError,)

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    async def begin(self) -> Link[Connection]:
        connection = await self.pool.acquire()
        context = connection.transaction()
        try:
            await context.__aenter__()
        except BaseException:
            await self.pool.release(connection)
            raise
        return ConnectionLink(connection, context)

    async def end(self, link: Link[Connection], *raised: Any) -> None:
        try:
            await link.context.__aexit__(*raised)
        finally:
            await self.pool.release(cast("PoolConnectionProxy[Any]", link.connection))

    def link(self, connection: Connection) -> Link[Connection]:
        return ConnectionLink(connection)


class ConnectionLink(Link[Connection]):
    async def is_in_transaction(self) -> bool:
        return self.connection.is_in_transaction()

    async def fetch(self, statement: str, *args: object) -> Row:
        return await self.connection.fetchrow(statement, *args)

    async def execute(self, statement: str, *args: object) -> None:
        await self.connection.execute(statement, *args)
