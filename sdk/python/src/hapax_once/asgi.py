"""ASGI: a middleware for whole applications and for single routes."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import quote

from .answer import Answer
from .database import AsyncDatabase, Database
from .errors import HapaxError
from .http import (
    PATH_SAFE,
    SAFE_METHODS,
    TRANSACTION,
    Arrival,
    HeaderList,
    Protection,
    marks,
    refusal,
    sent_headers,
    stored,
)
from .operation import Operation, Request
from .problem import Problem
from .threads import in_threads

Scope = MutableMapping[str, Any]
ASGIMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[ASGIMessage]]
Send = Callable[[ASGIMessage], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Tenant = str | Callable[[Scope], "Awaitable[str | None] | str | None"]

PROTECTION = Protection()


class Middleware:
    """Runs each request of a protected route once, in a transaction that it has in its scope.

    The tenant is a function of the scope, or one name if all callers are one tenant. Requests whose
    method promises to change nothing pass, and so does what `protects` says no to.
    """

    def __init__(
        self,
        app: App,
        database: AsyncDatabase[Any] | Database[Any],
        *,
        tenant: Tenant,
        protects: Callable[[Scope], bool] | None = None,
        protection: Protection = PROTECTION,
    ) -> None:
        self.app = app
        self.database = in_threads(database) if isinstance(database, Database) else database
        self.tenant = tenant
        self.protects = protects
        self.protection = protection

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self.is_protected(scope):
            await self.app(scope, receive, send)
            return
        exchange = Exchange(self.app, scope, receive)
        try:
            operation, request = await self.read(scope, exchange)
            options = self.protection.options
            answer = await self.database.once(operation, exchange.run, request, options)
        except Disconnected:
            return
        except (HapaxError, Problem) as error:
            problem = refusal(error)
            await respond(send, problem.status, problem.headers, problem.body)
        else:
            if answer.replayed:
                await respond(send, answer.status, sent_headers(answer), answer.body)
            else:
                await respond(send, answer.status, exchange.headers + marks(answer), answer.body)
                await exchange.go_on()
        finally:
            await exchange.stop()

    def is_protected(self, scope: Scope) -> bool:
        if scope["type"] != "http" or scope["method"] in SAFE_METHODS:
            return False
        return self.protects is None or self.protects(scope)

    async def read(self, scope: Scope, exchange: Exchange) -> tuple[Operation, Request]:
        """Which operation this is."""
        body = await exchange.receive_body(self.protection.check_size)
        raw_path: bytes = scope.get("raw_path") or quote(scope["path"], safe=PATH_SAFE).encode()
        arrival = Arrival(
            method=scope["method"],
            path=raw_path.partition(b"?")[0].decode("latin-1"),
            query=scope.get("query_string", b"").decode("latin-1"),
            headers=texts(scope["headers"]),
            body=body,
        )
        tenant = self.tenant if isinstance(self.tenant, str) else self.tenant(scope)
        named = await tenant if inspect.isawaitable(tenant) else tenant
        return self.protection.operation(arrival, named)


class Disconnected(Exception):
    """The client went away before its request was whole."""


class Exchange:
    """The application's side of one request.

    Its answer is held until the transaction has committed. What the application does after it has
    answered, such as background tasks, waits for that as well; what is rolled back never does it.
    """

    def __init__(self, app: App, scope: Scope, receive: Receive) -> None:
        self.app = app
        self.scope = scope
        self.receive = receive
        self.body = b""
        self.headers: HeaderList = []
        self.task: asyncio.Task[None] | None = None

    async def receive_body(self, check_size: Callable[[int], None]) -> bytes:
        """The whole body of the request."""
        more = True
        while more:
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            self.body += message.get("body", b"")
            check_size(len(self.body))
            more = message.get("more_body", False)
        return self.body

    async def run(self, transaction: Any) -> Answer:
        """Calls the application, and returns what it answers."""
        await self.stop()
        loop = asyncio.get_running_loop()
        self.status = 0
        self.chunks: list[bytes] = []
        self.is_body_read = False
        self.answered: asyncio.Future[Answer] = loop.create_future()
        self.committed = asyncio.Event()
        # Without extensions: a file that the server sends by itself could not be stored.
        scope = {**self.scope, TRANSACTION: transaction, "extensions": {}}
        self.task = task = loop.create_task(self.call(scope))
        either: set[asyncio.Future[Any]] = {task, self.answered}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self.answered.done():
            await task
            raise RuntimeError("the application ended without an answer")
        return self.answered.result()

    async def call(self, scope: Scope) -> None:
        await self.app(scope, self.read, self.write)

    async def read(self) -> ASGIMessage:
        if self.is_body_read:
            return await self.receive()
        self.is_body_read = True
        return {"type": "http.request", "body": self.body, "more_body": False}

    async def write(self, message: ASGIMessage) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = texts(message.get("headers", []))
        elif message["type"] == "http.response.body" and not self.answered.done():
            self.chunks.append(message.get("body", b""))
            if not message.get("more_body", False):
                self.answered.set_result(stored(self.status, self.headers, b"".join(self.chunks)))
                await self.committed.wait()

    async def go_on(self) -> None:
        """Lets the application do what it does after its answer."""
        if self.task is not None:
            self.committed.set()
            await self.task

    async def stop(self) -> None:
        """Ends what is still under way; what has ended stays as it is."""
        if self.task is not None and not self.task.done():
            self.task.cancel()
            await asyncio.gather(self.task, return_exceptions=True)


def texts(headers: Iterable[tuple[bytes, bytes]]) -> HeaderList:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


async def respond(send: Send, status: int, headers: HeaderList, body: bytes) -> None:
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
