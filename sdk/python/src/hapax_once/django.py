"""Django: `Database` on one of the project's databases, a decorator for views, and a middleware."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import wraps
from inspect import isawaitable
from typing import Any, TypeVar, cast

from asgiref.sync import async_to_sync, iscoroutinefunction, sync_to_async
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, InterfaceError, OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.module_loading import import_string

from . import database
from .answer import Answer
from .database import OPTIONS
from .driver import BlockingDriver, Link, Row, formatted
from .errors import Conflict, HapaxError, of_sqlstate
from .http import SAFE_METHODS, Arrival, Protection, marks, refusal, sent_headers, stored
from .operation import Options
from .problem import Problem

Respond = Callable[[HttpRequest], HttpResponseBase]
View = TypeVar("View", bound=Callable[..., Any])
Tenant = str | Callable[[HttpRequest], "str | None"]

PROTECTION = Protection()
RAISED = "hapax.raised"
MISPLACED = (
    "a protected view is asynchronous and does not look so: put `once` on the `async def` itself, "
    "or on what `as_view()` returns"
)


class Database(database.Database[BaseDatabaseWrapper]):
    """One of the project's databases. Work may use the ORM: it runs in `transaction.atomic`."""

    def __init__(self, using: str = DEFAULT_DB_ALIAS, options: Options = OPTIONS) -> None:
        super().__init__(AliasDriver(using), options)


class AliasDriver(BlockingDriver[BaseDatabaseWrapper]):
    lost = (OperationalError, InterfaceError)

    def __init__(self, using: str) -> None:
        self.using = using

    async def begin(self) -> Link[BaseDatabaseWrapper]:
        # Inside of another block COMMIT would not be ours: Django refuses that.
        context = transaction.atomic(using=self.using, durable=True)
        context.__enter__()
        return AliasLink(connections[self.using], context)

    async def end(self, link: Link[BaseDatabaseWrapper], *raised: Any) -> None:
        link.context.__exit__(*raised)

    def link(self, connection: BaseDatabaseWrapper) -> Link[BaseDatabaseWrapper]:
        return AliasLink(connection)


class AliasLink(Link[BaseDatabaseWrapper]):
    async def is_in_transaction(self) -> bool:
        return self.connection.in_atomic_block or not self.connection.get_autocommit()

    async def fetch(self, statement: str, *args: object) -> Row:
        cursor: Any = self.connection.cursor()
        cursor.execute(formatted(statement), args)
        return cursor.fetchone()

    async def execute(self, statement: str, *args: object) -> None:
        cursor: Any = self.connection.cursor()
        cursor.execute(formatted(statement), args or None)

    @asynccontextmanager
    async def savepoint(self, name: str) -> AsyncIterator[None]:
        # Django must know of it: after an error inside it would refuse every further query.
        with transaction.atomic(using=self.connection.alias):
            yield

    async def release(self, name: str) -> None:
        """`atomic` has done so."""


class Guard:
    """Answers requests once."""

    def __init__(self, database: Database, tenant: Tenant, protection: Protection) -> None:
        self.database = database
        self.tenant = tenant
        self.protection = protection

    def respond(self, request: HttpRequest, respond: Respond) -> HttpResponseBase:
        """What the project answers, or has answered."""
        if request.method in SAFE_METHODS:
            return respond(request)
        exchange = Exchange(self.database, request, respond)
        try:
            arrival = self.read(request)
            tenant = self.tenant if isinstance(self.tenant, str) else self.tenant(request)
            operation, asked = self.protection.operation(arrival, tenant)
            answer = self.database.once(operation, exchange.run, asked, self.protection.options)
        except (HapaxError, Problem) as error:
            problem = refusal(error)
            return made(problem.status, problem.headers, problem.body)
        if answer.replayed or exchange.response is None:
            return made(answer.status, sent_headers(answer), answer.body)
        for name, value in marks(answer):
            exchange.response[name] = value
        return exchange.response

    def read(self, request: HttpRequest) -> Arrival:
        self.protection.check_size(int(request.META.get("CONTENT_LENGTH") or 0))
        return Arrival(
            method=request.method or "",
            path=request.get_full_path().partition("?")[0],
            query=request.META.get("QUERY_STRING", ""),
            headers=list(request.headers.items()),
            body=request.body,
        )


class Exchange:
    """The project's side of one request."""

    def __init__(self, database: Database, request: HttpRequest, respond: Respond) -> None:
        self.database = database
        self.request = request
        self.respond = respond
        self.response: HttpResponseBase | None = None

    def run(self, _connection: BaseDatabaseWrapper) -> Answer:
        """Calls the project, and returns what it answers."""
        response = self.respond(self.request)
        raised = self.request.META.pop(RAISED, None)
        if raised is not None:
            # Django has made a response of it, but the transaction can be tried again.
            sqlstate = self.database.driver.sqlstate(raised)
            if isinstance(of_sqlstate(sqlstate, ""), Conflict):
                raise raised
        if isawaitable(response):
            raise ImproperlyConfigured(MISPLACED)
        if callable(render := getattr(response, "render", None)):
            response = render()
        if getattr(response, "is_async", False):
            body = async_to_sync(joined)(response)
        else:
            body = response.getvalue()
        if response.streaming:
            response = made(response.status_code, list(response.items()), body)
        self.response = response
        return stored(response.status_code, response.items(), body)


async def joined(response: Any) -> bytes:
    """The body of an answer that an asynchronous view sends in parts."""
    return b"".join([part async for part in response])


def made(status: int, headers: list[tuple[str, str]], body: bytes) -> HttpResponse:
    response = HttpResponse(body, status=status)
    del response["content-type"]
    repeated: dict[str, list[str]] = {}
    for name, value in headers:
        repeated.setdefault(name, []).append(value)
    for name, values in repeated.items():
        response[name] = ", ".join(values)
    return response


def once(
    *, tenant: Tenant, using: str = DEFAULT_DB_ALIAS, protection: Protection = PROTECTION
) -> Callable[[View], View]:
    """Protects a view. The tenant is a function of the request, or one name for all callers.

    An `async def` is awaited as ever. Its transaction is one of Django's own, which belong to a
    thread: the view writes with the ORM's asynchronous methods, or in `sync_to_async`.
    """
    guard = Guard(Database(using), tenant, protection)

    def decorate(view: View) -> View:
        is_async = iscoroutinefunction(view)
        respond: Callable[..., HttpResponseBase] = async_to_sync(view) if is_async else view

        def protected(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if is_in_event_loop():
                raise ImproperlyConfigured(MISPLACED)
            return guard.respond(request, lambda request: respond(request, *args, **kwargs))

        async def awaited(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            # In the thread of the request, where what the view does with the ORM comes back to.
            return await sync_to_async(protected)(request, *args, **kwargs)

        return cast(View, wraps(view)(awaited if is_async else protected))

    return decorate


def is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class Middleware:
    """Protects all views, or those that `HAPAX["PROTECTS"]` says yes to.

    The settings have `HAPAX = {"TENANT": …, "PROTECTS": …, "USING": …, "PROTECTION": …}`; functions
    are given as such or by their dotted names. Only the tenant is needed: a function of the
    request, or `{"TENANT_FOR_ALL": "shop"}` if all callers are one tenant.
    """

    sync_capable = True
    async_capable = False

    def __init__(self, get_response: Respond) -> None:
        configured: dict[str, Any] = getattr(settings, "HAPAX", {})
        tenant = configured.get("TENANT_FOR_ALL") or function(configured.get("TENANT"))
        if tenant is None:
            raise ImproperlyConfigured("HAPAX has no TENANT: name a function of the request")
        self.get_response = get_response
        self.protects = function(configured.get("PROTECTS")) or (lambda request: True)
        protection = configured.get("PROTECTION", PROTECTION)
        self.guard = Guard(Database(configured.get("USING", DEFAULT_DB_ALIAS)), tenant, protection)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not self.protects(request):
            return self.get_response(request)
        return self.guard.respond(request, self.get_response)

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        """Notes what a view raised, before Django makes a response of it."""
        request.META[RAISED] = exception


def function(named: Any) -> Any:
    """A function, or what has this dotted name."""
    return import_string(named) if isinstance(named, str) else named
