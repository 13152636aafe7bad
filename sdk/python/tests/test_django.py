"""Django: the ORM in the transaction, a decorator for views, and a middleware."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import django
import pytest
from asgiref.sync import sync_to_async
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.postgresql", "NAME": "none"}},
    ROOT_URLCONF=__name__,
    ALLOWED_HOSTS=["*"],
    SECRET_KEY="a test",
    USE_TZ=False,
    HAPAX={"TENANT": f"{__name__}.tenant", "PROTECTS": f"{__name__}.protects"},
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
)
django.setup()

from django.core.exceptions import ImproperlyConfigured  # noqa: E402
from django.db import connection, connections, models, transaction  # noqa: E402
from django.http import (  # noqa: E402
    Http404,
    HttpRequest,
    HttpResponse,
    JsonResponse,
    StreamingHttpResponse,
)
from django.test import AsyncClient, Client, override_settings  # noqa: E402
from django.urls import path  # noqa: E402
from django.utils.decorators import method_decorator  # noqa: E402
from django.views import View  # noqa: E402
from django.views.decorators.csrf import csrf_exempt  # noqa: E402

from hapax_once import Answer, Operation, Refused, errors  # noqa: E402
from hapax_once.django import Database, Middleware, once  # noqa: E402

Effects = Callable[[], list[str]]
CALLS: list[str] = []
COMMITTED: list[str] = []


class Effect(models.Model):
    name: models.TextField[str, str] = models.TextField(primary_key=True)

    class Meta:
        app_label = "tests"
        db_table = "effects"
        managed = False


def tenant(request: HttpRequest) -> str | None:
    return request.headers.get("x-tenant", "shop") or None


def protects(request: HttpRequest) -> bool:
    return request.path.startswith("/middleware/")


def pay(request: HttpRequest, order: str) -> Any:
    CALLS.append(order)
    Effect.objects.create(name=order)
    transaction.on_commit(lambda: COMMITTED.append(order))
    if order == "refused":
        return JsonResponse({"error": "no money"}, status=402)
    if order == "missing":
        raise Http404
    if order == "broken":
        raise RuntimeError("broken")
    if order == "stream":
        return StreamingHttpResponse([b"one", b"two"], status=201)
    if order == "conflict" and len(CALLS) < 3:
        fail_with_a_conflict()
    response = HttpResponse("paid", status=201, content_type="text/plain")
    response.set_cookie("session", "secret")
    return response


async def pay_async(request: HttpRequest, order: str) -> Any:
    CALLS.append(order)
    await Effect.objects.acreate(name=order)
    if order == "refused":
        return JsonResponse({"error": "no money"}, status=402)
    if order == "broken":
        raise RuntimeError("broken")
    if order == "conflict" and len(CALLS) < 3:
        await sync_to_async(fail_with_a_conflict)()
    if order == "stream":
        return StreamingHttpResponse(parts(), status=201)
    return HttpResponse("paid", status=201, content_type="text/plain")


async def parts() -> AsyncIterator[bytes]:
    for part in (b"one", b"two"):
        yield part


def fail_with_a_conflict() -> None:
    with connection.cursor() as cursor:
        cursor.execute("DO $$BEGIN RAISE SQLSTATE '40001'; END$$")


class Payments(View):
    async def post(self, request: HttpRequest, order: str) -> Any:
        return await pay_async(request, order)


@method_decorator(once(tenant="shop"), name="dispatch")
class Misplaced(Payments):
    pass


urlpatterns = [
    path("async/<str:order>", csrf_exempt(once(tenant="shop")(pay_async))),
    path("class/<str:order>", csrf_exempt(once(tenant="shop")(Payments.as_view()))),
    path("misplaced/<str:order>", csrf_exempt(Misplaced.as_view())),
    path("middleware/async/<str:order>", csrf_exempt(pay_async)),
    path("middleware/<str:order>", csrf_exempt(pay)),
    path("free/<str:order>", csrf_exempt(pay)),
    path("view/<str:order>", csrf_exempt(once(tenant="shop")(pay))),
]

MIDDLEWARE = override_settings(MIDDLEWARE=["hapax_once.django.Middleware"])
DOORS = pytest.mark.parametrize("door", ["/middleware/", "/view/"])


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    CALLS.clear()
    COMMITTED.clear()
    at = urlsplit(url)
    database = connections["default"]
    where = {"NAME": at.path[1:], "USER": at.username, "HOST": at.hostname, "PORT": at.port}
    database.settings_dict.update(where)
    with MIDDLEWARE:
        yield Client(raise_request_exception=False)
    database.close()


def ask(client: Client, where: str, key: str = "k", body: str = "") -> Any:
    return client.post(where, body, "text/plain", headers={"Idempotency-Key": key})


@DOORS
def test_the_first_answer_is_replayed(client: Client, effects: Effects, door: str) -> None:
    first, again = ask(client, door + "one"), ask(client, door + "one")
    assert (
        (first.status_code, first.content) == (again.status_code, again.content) == (201, b"paid")
    )
    assert again["Idempotent-Replayed"] == "true"
    assert first["Idempotency-Expires"] == again["Idempotency-Expires"]
    assert again["Content-Type"] == "text/plain"
    assert ("session" in first.cookies, "session" in again.cookies) == (True, False)
    assert (effects(), COMMITTED) == (["one"], ["one"])


@DOORS
def test_refusals_are_kept_without_their_writes(
    client: Client, effects: Effects, door: str
) -> None:
    assert ask(client, door + "refused").status_code == 402
    assert ask(client, door + "refused")["Idempotent-Replayed"] == "true"
    assert (effects(), COMMITTED, CALLS) == ([], [], ["refused"])


def test_what_a_view_raises_is_what_django_makes_of_it(client: Client, effects: Effects) -> None:
    assert ask(client, "/middleware/missing").status_code == 404
    assert ask(client, "/middleware/missing")["Idempotent-Replayed"] == "true"
    for _ in range(2):
        assert ask(client, "/middleware/broken", "b").status_code == 500
    assert (effects(), CALLS) == ([], ["missing", "broken", "broken"])


@DOORS
def test_a_conflict_runs_the_view_again(client: Client, effects: Effects, door: str) -> None:
    assert ask(client, door + "conflict").status_code == 201
    assert (effects(), len(CALLS), COMMITTED) == (["conflict"], 3, ["conflict"])


@DOORS
def test_an_answer_in_parts_is_kept_whole(client: Client, door: str) -> None:
    first, again = ask(client, door + "stream"), ask(client, door + "stream")
    assert first.content == again.content == b"onetwo"
    assert again["Idempotent-Replayed"] == "true"


ASYNC_DOORS = pytest.mark.parametrize("door", ["/async/", "/class/", "/middleware/async/"])
SERVERS = pytest.mark.parametrize("is_async", [True, False], ids=["asgi", "wsgi"])


@ASYNC_DOORS
@SERVERS
def test_an_asynchronous_view_is_answered_once(
    client: Client, effects: Effects, door: str, is_async: bool
) -> None:
    ask = asker(client, is_async)
    first, again = ask(door + "one"), ask(door + "one")
    assert (first.status_code, first.content) == (201, b"paid")
    assert (again.status_code, again.content) == (201, b"paid")
    assert again["Idempotent-Replayed"] == "true"
    for _ in range(2):
        assert ask(door + "refused", "r").status_code == 402
    for _ in range(2):
        assert ask(door + "broken", "b").status_code == 500
    assert ask(door + "stream", "s").content == ask(door + "stream", "s").content == b"onetwo"
    assert (effects(), CALLS) == (
        ["one", "stream"],
        ["one", "refused", "broken", "broken", "stream"],
    )
    CALLS.clear()
    assert ask(door + "conflict", "c").status_code == 201
    assert (effects(), len(CALLS)) == (["conflict", "one", "stream"], 3)


def asker(client: Client, is_async: bool) -> Callable[..., Any]:
    """Posts by the door of Django that is asynchronous, or by the other one."""
    if not is_async:
        return lambda where, key="k": ask(client, where, key)
    other = AsyncClient(raise_request_exception=False)

    async def asked(where: str, key: str) -> Any:
        try:
            return await other.post(where, "", "text/plain", headers={"Idempotency-Key": key})
        finally:
            await sync_to_async(connections.close_all)()

    return lambda where, key="k": asyncio.run(asked(where, key))


def test_a_decorator_on_what_only_returns_a_coroutine_says_where_it_belongs(
    effects: Effects, client: Client
) -> None:
    client = Client()
    with pytest.raises(ImproperlyConfigured, match="as_view"):
        ask(client, "/misplaced/one")
    assert (effects(), CALLS) == ([], [])


def test_problems_are_told(client: Client, effects: Effects) -> None:
    missing = client.post("/middleware/one")
    assert (missing.status_code, missing.json()["code"]) == (400, "key-missing")
    assert missing["Content-Type"] == "application/problem+json"
    nobody = client.post("/middleware/one", headers={"Idempotency-Key": "k", "X-Tenant": ""})
    assert nobody.json()["code"] == "credential-missing"
    ask(client, "/middleware/one")
    assert ask(client, "/middleware/one", body="other").json()["differs"] == ["body"]
    assert effects() == ["one"]


def test_what_is_not_protected_passes(client: Client) -> None:
    assert client.post("/free/one").status_code == 201
    assert client.get("/middleware/two").status_code == 201


def test_once_is_refused_inside_of_another_transaction(client: Client) -> None:
    database = Database()
    operation = Operation("shop", "POST /payments", "k")
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        database.once(operation, lambda connection: Answer())
    with pytest.raises(errors.NotInTransaction):
        database.emit(connection, "paid", "k", "{}")


def test_after_a_failed_query_a_refusal_can_still_be_kept(client: Client, effects: Effects) -> None:
    def work(_connection: Any) -> Answer:
        Effect.objects.create(name="one")
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1 / 0")
        except django.db.DataError as error:
            raise Refused(Answer(402)) from error
        return Answer()

    operation = Operation("shop", "POST /payments", "k")
    assert Database().once(operation, work).status == 402
    assert Database().once(operation, work).replayed
    assert effects() == []


def test_a_middleware_without_a_tenant_does_not_start() -> None:
    with override_settings(HAPAX={}), pytest.raises(ImproperlyConfigured, match="TENANT"):
        Middleware(lambda request: HttpResponse())
