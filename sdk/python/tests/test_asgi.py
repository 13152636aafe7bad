"""Starlette and plain ASGI: a middleware around an application, or around one route."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import asyncpg
import httpx
import pytest
from psycopg_pool import AsyncConnectionPool
from starlette.applications import Starlette
from starlette.middleware import Middleware as Wrapped
from starlette.requests import Request
from starlette.responses import FileResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from hapax_once.asgi import Middleware, Scope
from hapax_once.asyncpg import AsyncDatabase
from hapax_once.http import TRANSACTION
from hapax_once.psycopg import AsyncDatabase as PsycopgDatabase

Effects = Callable[[], list[str]]


async def pay(request: Request) -> Response:
    body = await request.body()
    await request.scope[TRANSACTION].execute("INSERT INTO effects VALUES ($1)", body.decode())
    if body == b"stream":

        async def parts() -> AsyncIterator[bytes]:
            for part in (b"one", b"two", b"three"):
                yield part

        return StreamingResponse(parts(), 201, media_type="text/plain")
    if body == b"file":
        return FileResponse(__file__)
    return PlainTextResponse("paid", 201)


async def tenant(scope: Scope) -> str:
    return "shop"


@pytest.fixture
async def http(url: str) -> AsyncIterator[httpx.AsyncClient]:
    pool = await asyncpg.create_pool(url, min_size=1, max_size=4)
    guard = Wrapped(Middleware, database=AsyncDatabase(pool), tenant=tenant)
    app = Starlette(
        routes=[
            Route("/payments", pay, methods=["POST"], middleware=[guard]),
            Route("/free", lambda request: PlainTextResponse("free"), methods=["POST"]),
        ]
    )
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        yield client
    await pool.close()


def key(name: str) -> dict[str, str]:
    return {"Idempotency-Key": name}


async def test_one_route_is_protected_and_others_are_not(
    http: httpx.AsyncClient, effects: Effects
) -> None:
    first = await http.post("/payments", content="one", headers=key("k"))
    again = await http.post("/payments", content="one", headers=key("k"))
    assert (first.status_code, first.text) == (again.status_code, again.text) == (201, "paid")
    assert again.headers["idempotent-replayed"] == "true"
    assert (await http.post("/free")).text == "free"
    assert effects() == ["one"]


@pytest.mark.parametrize("what", ["stream", "file"])
async def test_an_answer_in_parts_is_kept_whole(http: httpx.AsyncClient, what: str) -> None:
    first = await http.post("/payments", content=what, headers=key("k"))
    again = await http.post("/payments", content=what, headers=key("k"))
    assert first.content == again.content != b""
    assert again.headers["idempotent-replayed"] == "true"


async def test_a_whole_application_is_protected_where_it_says(url: str, effects: Effects) -> None:
    async with AsyncConnectionPool(url, min_size=1, open=False) as pool:

        async def app(scope: Any, receive: Any, send: Any) -> None:
            message = await receive()
            if TRANSACTION in scope:
                name = message["body"].decode()
                await scope[TRANSACTION].execute("INSERT INTO effects VALUES (%s)", (name,))
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"ok"})

        protected = Middleware(
            app,
            PsycopgDatabase(pool),
            tenant="shop",
            protects=lambda scope: scope["path"].startswith("/payments"),
        )
        transport = httpx.ASGITransport(protected)
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as client:
            for _ in range(2):
                answer = await client.post("/payments/caf%C3%A9", content="one", headers=key("k"))
                assert answer.text == "ok"
            assert (await client.post("/other")).text == "ok"
            assert (await client.get("/payments")).text == "ok"
            long = await client.post("/payments/" + "x" * 1024, headers=key("k"))
            assert (long.status_code, long.json()["code"]) == (400, "scope-unusable")
    assert effects() == ["one"]


async def test_a_database_that_is_away_is_told_as_a_problem() -> None:
    pool = await asyncpg.create_pool("postgres://nobody@127.0.0.1:1/none", min_size=0)
    app = Middleware(pay, AsyncDatabase(pool), tenant="shop")  # type: ignore[arg-type]
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        answer = await client.post("/payments", headers=key("k"))
    assert (answer.status_code, answer.json()["code"]) == (503, "store-unavailable")
    assert answer.headers["retry-after"] == "1"
    assert answer.headers["hapax-refusal"] == "store-unavailable"


async def test_an_application_that_does_not_answer_is_rolled_back(
    url: str, effects: Effects
) -> None:
    async def silent(scope: Any, receive: Any, send: Any) -> None:
        await scope[TRANSACTION].execute("INSERT INTO effects VALUES ('silent')")

    pool = await asyncpg.create_pool(url, min_size=1)
    app = Middleware(silent, AsyncDatabase(pool), tenant="shop")
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://x") as client:
        with pytest.raises(RuntimeError, match="without an answer"):
            await client.post("/payments", headers=key("k"))
    await pool.close()
    assert effects() == []
