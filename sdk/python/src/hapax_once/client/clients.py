"""The clients: `Client`, and `AsyncClient` for asyncio."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar

import httpx

from ..driver import run
from ..errors import HapaxError
from .caller import (
    ATTEMPT_SECONDS,
    ATTEMPTS_MAX,
    DEADLINE_SECONDS,
    RETENTION_SECONDS,
    Caller,
    Reply,
)
from .wire import AsyncHttpxWire, HttpxWire

T = TypeVar("T")


class Client(Caller):
    """A client that retries what it may, and finishes what it has begun.

    With a journal, `name` names what should happen once: the same name never has a second effect.
    `headers` go with every request and are never written down.
    """

    def __init__(
        self,
        journal: str | os.PathLike[str] | None = None,
        *,
        http: httpx.Client | None = None,
        headers: Mapping[str, str] | None = None,
        deadline: float = DEADLINE_SECONDS,
        attempt_timeout: float = ATTEMPT_SECONDS,
        attempts_max: int = ATTEMPTS_MAX,
    ) -> None:
        super().__init__(journal, headers, deadline, attempt_timeout, attempts_max)
        self.http = http or httpx.Client()
        self.wire = HttpxWire(
            lambda request: self.http.send(request, stream=True, follow_redirects=False)
        )

    async def write(self, note: Callable[[], T]) -> T:
        return note()

    def send(
        self,
        method: str,
        url: str,
        *,
        name: str | None = None,
        key: str | None = None,
        json: Any = None,
        content: bytes | str = b"",
        headers: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> Reply:
        """Sends a request until it is done, or raises a `CallError` that says what is known."""
        outgoing = self.outgoing(method, url, json, content, headers, key)
        return run(self.call(outgoing, name, deadline))

    def post(self, url: str, **request: Any) -> Reply:
        """`send` with POST."""
        return self.send("POST", url, **request)

    def resume(self) -> dict[str, Reply | HapaxError]:
        """Finishes what earlier runs began and nobody pursues; what came of each, by its name."""
        return run(self.resume_all())

    def take_up(self, name: str, deadline: float | None = None) -> Reply:
        """Asks again for an operation by its name alone."""
        return run(self.take_up_named(name, deadline))

    def forget(self, name: str) -> None:
        """Forgets an operation that will never be sent again."""
        self.needs_journal().forget(name)

    def purge(self) -> int:
        """Removes what ended more than seven days ago; how much."""
        return self.needs_journal().purge(time.time() - RETENTION_SECONDS)

    def close(self) -> None:
        self.http.close()
        if self.journal is not None:
            self.journal.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self.close()


class AsyncClient(Caller):
    """The same for asyncio."""

    def __init__(
        self,
        journal: str | os.PathLike[str] | None = None,
        *,
        http: httpx.AsyncClient | None = None,
        headers: Mapping[str, str] | None = None,
        deadline: float = DEADLINE_SECONDS,
        attempt_timeout: float = ATTEMPT_SECONDS,
        attempts_max: int = ATTEMPTS_MAX,
    ) -> None:
        super().__init__(journal, headers, deadline, attempt_timeout, attempts_max)
        self.http = http or httpx.AsyncClient()
        self.wire = AsyncHttpxWire(
            lambda request: self.http.send(request, stream=True, follow_redirects=False)
        )

    async def write(self, note: Callable[[], T]) -> T:
        return await asyncio.to_thread(note)

    async def send(
        self,
        method: str,
        url: str,
        *,
        name: str | None = None,
        key: str | None = None,
        json: Any = None,
        content: bytes | str = b"",
        headers: Mapping[str, str] | None = None,
        deadline: float | None = None,
    ) -> Reply:
        """Sends a request until it is done, or raises a `CallError` that says what is known."""
        return await self.call(
            self.outgoing(method, url, json, content, headers, key), name, deadline
        )

    async def post(self, url: str, **request: Any) -> Reply:
        """`send` with POST."""
        return await self.send("POST", url, **request)

    async def resume(self) -> dict[str, Reply | HapaxError]:
        """Finishes what earlier runs began and nobody pursues; what came of each, by its name."""
        return await self.resume_all()

    async def take_up(self, name: str, deadline: float | None = None) -> Reply:
        """Asks again for an operation by its name alone."""
        return await self.take_up_named(name, deadline)

    async def forget(self, name: str) -> None:
        """Forgets an operation that will never be sent again."""
        journal = self.needs_journal()
        await self.write(lambda: journal.forget(name))

    async def purge(self) -> int:
        """Removes what ended more than seven days ago; how much."""
        journal = self.needs_journal()
        return await self.write(lambda: journal.purge(time.time() - RETENTION_SECONDS))

    async def close(self) -> None:
        await self.http.aclose()
        if self.journal is not None:
            self.journal.close()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        await self.close()
