"""WSGI: a middleware for whole applications."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from .answer import Answer
from .database import Database
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
from .problem import Problem

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

PROTECTION = Protection()


class Middleware:
    """Runs each request of a protected route once, in a transaction that it has in its environ.

    The tenant is a function of the environ, or one name if all callers are one tenant. Requests
    whose method promises to change nothing pass, and so does what `protects` says no to.
    """

    def __init__(
        self,
        app: WSGIApplication,
        database: Database[Any],
        *,
        tenant: str | Callable[[WSGIEnvironment], str | None],
        protects: Callable[[WSGIEnvironment], bool] | None = None,
        protection: Protection = PROTECTION,
    ) -> None:
        self.app = app
        self.database = database
        self.tenant = tenant
        self.protects = protects
        self.protection = protection

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        if not self.is_protected(environ):
            return self.app(environ, start_response)
        try:
            arrival = self.read(environ)
            tenant = self.tenant if isinstance(self.tenant, str) else self.tenant(environ)
            operation, request = self.protection.operation(arrival, tenant)
            exchange = Exchange(self.app, environ, arrival.body)
            try:
                answer = self.database.once(
                    operation, exchange.run, request, self.protection.options
                )
            except BaseException:
                exchange.close()
                raise
        except (HapaxError, Problem) as error:
            problem = refusal(error)
            start_response(line(problem.status), problem.headers)
            return [problem.body]
        if answer.replayed:
            start_response(line(answer.status), sent_headers(answer))
            return [answer.body]
        start_response(exchange.status, exchange.headers + marks(answer))
        return Sent(answer.body, exchange.close)

    def is_protected(self, environ: WSGIEnvironment) -> bool:
        if environ["REQUEST_METHOD"] in SAFE_METHODS:
            return False
        return self.protects is None or self.protects(environ)

    def read(self, environ: WSGIEnvironment) -> Arrival:
        size = int(environ.get("CONTENT_LENGTH") or 0)
        if not size and environ.get("wsgi.input_terminated"):
            size = self.protection.body_bytes_max + 1
        body = environ["wsgi.input"].read(min(size, self.protection.body_bytes_max + 1))
        self.protection.check_size(len(body))
        path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        headers = [
            (name[5:].replace("_", "-"), value)
            for name, value in environ.items()
            if name.startswith("HTTP_")
        ]
        headers.append(("content-type", environ.get("CONTENT_TYPE", "")))
        return Arrival(
            method=environ["REQUEST_METHOD"],
            path=quote(path.encode("latin-1"), safe=PATH_SAFE),
            query=environ.get("QUERY_STRING", ""),
            headers=headers,
            body=body,
        )


class Exchange:
    """The application's side of one request. It is closed when its transaction has ended."""

    def __init__(self, app: WSGIApplication, environ: WSGIEnvironment, body: bytes) -> None:
        self.app = app
        self.environ = environ
        self.body = body
        self.result: Iterable[bytes] = ()
        self.status = ""
        self.headers: HeaderList = []

    def run(self, transaction: Any) -> Answer:
        """Calls the application, and returns what it answers."""
        self.close()
        written: list[bytes] = []

        def start_response(status: str, headers: HeaderList, exc_info: Any = None) -> Any:
            self.status, self.headers = status, list(headers)
            return written.append

        environ = {
            **self.environ,
            TRANSACTION: transaction,
            "wsgi.input": io.BytesIO(self.body),
            "CONTENT_LENGTH": str(len(self.body)),
        }
        self.result = self.app(environ, start_response)
        body = b"".join([*written, *self.result])
        return stored(int(self.status.split(" ", 1)[0]), self.headers, body)

    def close(self) -> None:
        result, self.result = self.result, ()
        if callable(close := getattr(result, "close", None)):
            close()


class Sent:
    """A body, and what the application does when it was sent."""

    def __init__(self, body: bytes, close: Callable[[], None]) -> None:
        self.body = body
        self.close = close

    def __iter__(self) -> Iterator[bytes]:
        yield self.body


def line(status: int) -> str:
    """A status with its phrase, as WSGI asks for."""
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"{status} Unknown"
