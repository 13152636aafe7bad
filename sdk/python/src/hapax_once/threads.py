"""A blocking database for asyncio: every transaction has a thread of its own.

Of its own, because a duplicate that waits must not take the thread of the one it waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from contextvars import copy_context
from typing import Any, TypeVar

from .database import AsyncDatabase, Database
from .driver import AsyncDriver, Driver, Link, Row, run

C = TypeVar("C")
T = TypeVar("T")


def in_threads(database: Database[C]) -> AsyncDatabase[C]:
    """The same database, for asyncio."""
    return AsyncDatabase(ThreadedDriver(database.driver), database.options)


class ThreadedDriver(AsyncDriver[C]):
    def __init__(self, blocking: Driver[C]) -> None:
        self.blocking = blocking
        self.lost = blocking.lost

    async def begin(self) -> Link[C]:
        thread = ThreadPoolExecutor(1, "hapax")
        beginning = thread.submit(copy_context().run, run, self.blocking.begin())
        try:
            link = await asyncio.wrap_future(beginning)
        except BaseException as error:
            thread.submit(self.give_back, beginning, error)
            thread.shutdown(wait=False)
            raise
        return ThreadedLink(link, thread)

    def give_back(self, beginning: Future[Link[C]], error: BaseException) -> None:
        """Ends what was begun for somebody who no longer waits for it."""
        if not beginning.cancelled() and beginning.exception() is None:
            run(self.blocking.end(beginning.result(), type(error), error, None))

    async def end(self, link: Link[C], *raised: Any) -> None:
        thread: ThreadPoolExecutor = link.context
        blocking = link.blocking if isinstance(link, ThreadedLink) else link
        try:
            await run_in(thread, self.blocking.end(blocking, *raised))
        finally:
            thread.shutdown(wait=False)

    def link(self, connection: C) -> Link[C]:
        return ThreadedLink(self.blocking.link(connection), None)


class ThreadedLink(Link[C]):
    """A connection whose statements run in a thread, by default in any."""

    def __init__(self, blocking: Link[C], thread: ThreadPoolExecutor | None) -> None:
        super().__init__(blocking.connection, thread)
        self.blocking = blocking

    async def is_in_transaction(self) -> bool:
        return await run_in(self.context, self.blocking.is_in_transaction())

    async def fetch(self, statement: str, *args: object) -> Row:
        return await run_in(self.context, self.blocking.fetch(statement, *args))

    async def execute(self, statement: str, *args: object) -> None:
        await run_in(self.context, self.blocking.execute(statement, *args))

    def savepoint(self, name: str) -> AbstractAsyncContextManager[None]:
        return ThreadedSavepoint(self.blocking.savepoint(name), self.context)

    async def release(self, name: str) -> None:
        await run_in(self.context, self.blocking.release(name))


class ThreadedSavepoint(AbstractAsyncContextManager[None]):
    def __init__(
        self, blocking: AbstractAsyncContextManager[None], thread: ThreadPoolExecutor | None
    ) -> None:
        self.blocking = blocking
        self.thread = thread

    async def __aenter__(self) -> None:
        await run_in(self.thread, self.blocking.__aenter__())

    async def __aexit__(self, *raised: Any) -> None:
        await run_in(self.thread, self.blocking.__aexit__(*raised))


async def run_in(thread: ThreadPoolExecutor | None, steps: Coroutine[Any, Any, T]) -> T:
    """Runs what never suspends in a thread."""
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(thread, copy_context().run, run, steps)
