"""FastAPI: the handler gets its model and its transaction, and the API is described as before."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Annotated, Any

import httpx
import pytest
from conftest import served
from fastapi import (
    APIRouter,
    BackgroundTasks,
    Depends,
    FastAPI,
    Header,
    HTTPException,
    Request,
    Response,
)
from fastapi.routing import APIRoute
from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel, Field
from sqlalchemy import create_engine, text
from sqlalchemy.orm import Session, sessionmaker

from hapax_once.fastapi import once_route, transaction
from hapax_once.http import Protection
from hapax_once.psycopg import AsyncDatabase
from hapax_once.sqlalchemy import Database

Effects = Callable[[], list[str]]


class Payment(BaseModel):
    order: str = Field(min_length=1)
    cents: int = Field(gt=0)
    sent_at: str = ""


class Receipt(BaseModel):
    payment: str
    cents: int


Db = Annotated[AsyncConnection[Any], Depends(transaction)]


def routes(
    route_class: type[APIRoute], database: AsyncDatabase | None, done: list[str]
) -> APIRouter:
    router = APIRouter(prefix="/v1", route_class=route_class)

    @router.post("/payments", status_code=201, response_model=Receipt, tags=["payments"])
    async def pay(
        payment: Payment,
        db: Db,
        background: BackgroundTasks,
        response: Response,
        trace: Annotated[str | None, Header()] = None,
    ) -> Any:
        if payment.order == "none left":
            await insert(db, "refused")
            raise HTTPException(402, "not enough money")
        if payment.order == "later":
            raise HTTPException(503, "later")
        if payment.order == "broken":
            await insert(db, "broken")
            raise RuntimeError("broken")
        if payment.order == "conflict" and len(done) < 2:
            done.append("conflict")
            await db.execute("DO $$BEGIN RAISE SQLSTATE '40001'; END$$")
        await insert(db, payment.order)
        if payment.order == "slow":
            await asyncio.sleep(0.2)
        response.set_cookie("session", "secret")
        response.headers["x-a"] = "b"
        if database is not None:
            await database.emit(db, "payment.completed", payment.order, payment.model_dump_json())
        background.add_task(done.append, "task")
        return {"payment": payment.order, "cents": payment.cents, "internal": "never shown"}

    @router.get("/payments")
    async def payments() -> list[str]:
        return ["none"]

    return router


async def insert(db: AsyncConnection[Any], name: str) -> None:
    await db.execute("INSERT INTO effects VALUES (%s)", (name,))


def tenant(request: Request) -> str | None:
    return request.headers.get("x-tenant", "shop") or None


class Service:
    """A service on a port of its own; what its background tasks did is in `done`."""

    def __init__(self, address: str, done: list[str]) -> None:
        self.http = httpx.Client(base_url=address)
        self.done = done

    def pay(self, order: str = "one", key: str | None = "k", **more: Any) -> httpx.Response:
        headers = {} if key is None else {"Idempotency-Key": key}
        body = {"order": order, "cents": 500, **more.pop("body", {})}
        return self.http.post(
            "/v1/payments", json=body, headers={**headers, **more.pop("headers", {})}, **more
        )


@pytest.fixture
def service(url: str) -> Iterator[Service]:
    pool = AsyncConnectionPool(url, min_size=1, max_size=10, open=False)
    database, done = AsyncDatabase(pool), list[str]()

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with pool:
            yield

    app = FastAPI(lifespan=lifespan)
    route = once_route(database, tenant=tenant, protection=Protection(ignored=["/sent_at"]))
    app.include_router(routes(route, database, done))
    with served(app) as address:
        service = Service(address, done)
        yield service
        service.http.close()


def until_done(service: Service, expected: list[str]) -> None:
    """Background tasks run after the answer was sent."""
    ends = time.monotonic() + 10
    while service.done != expected:
        assert time.monotonic() < ends, service.done
        time.sleep(0.01)


def problem(response: httpx.Response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json"
    return response.status_code, response.json()["code"]


def test_the_description_of_the_api_stays_as_it_was() -> None:
    def described(route_class: type[APIRoute]) -> Any:
        app = FastAPI()
        app.include_router(routes(route_class, None, []))
        return app.openapi()

    protected = once_route(AsyncDatabase(AsyncConnectionPool("", open=False)), tenant="shop")
    assert described(protected) == described(APIRoute)


def test_a_handler_with_a_transaction_is_described_like_one_without() -> None:
    with_db, without = FastAPI(), FastAPI()
    database = AsyncDatabase(AsyncConnectionPool("", open=False))
    with_db.router.route_class = once_route(database, tenant="shop")

    @with_db.post("/payments", status_code=201, name="pay")
    async def pay_with_db(payment: Payment, db: Db) -> Receipt:
        return Receipt(payment=payment.order, cents=payment.cents)

    @without.post("/payments", status_code=201, name="pay")
    async def pay_without(payment: Payment) -> Receipt:
        return Receipt(payment=payment.order, cents=payment.cents)

    with served(with_db) as one, served(without) as other:
        described = [httpx.get(f"{address}/openapi.json") for address in (one, other)]
    assert described[0].json() == described[1].json()
    assert described[0].json()["paths"]["/payments"]["post"]["requestBody"]["required"]


def test_the_first_answer_is_replayed_and_there_is_one_effect(
    service: Service, effects: Effects, hapax: Any
) -> None:
    with hapax.one_effect("effects"):
        first, again = service.pay(), service.pay()
    assert (first.status_code, first.json()) == (201, {"payment": "one", "cents": 500})
    assert (again.status_code, again.content) == (201, first.content)
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert first.headers["idempotency-expires"] == again.headers["idempotency-expires"]
    assert first.headers["x-a"] == again.headers["x-a"] == "b"
    assert ("set-cookie" in first.headers, "set-cookie" in again.headers) == (True, False)
    assert [key for key, _ in hapax.events("payment.completed")] == ["one"]
    until_done(service, ["task"])


def test_a_request_is_the_same_by_its_content(service: Service) -> None:
    service.pay(body={"sent_at": "12:00"})
    assert service.pay(body={"sent_at": "12:01"}).headers["idempotent-replayed"] == "true"
    headers = {"idempotency-key": '"k"', "content-type": "application/json"}
    spelled = '{"cents":5e2,"sent_at":"", "order":"\\u006fne"}'
    again = service.http.post("/v1/payments", content=spelled, headers=headers)
    assert again.headers["idempotent-replayed"] == "true"
    other = service.pay(body={"cents": 501})
    assert problem(other) == (422, "key-reused")
    assert other.json()["differs"] == ["body"]
    assert service.pay(params={"dry": "1"}).json()["differs"] == ["query"]


def test_a_request_without_a_usable_key_is_refused(service: Service, effects: Effects) -> None:
    assert problem(service.pay(key=None)) == (400, "key-missing")
    assert problem(service.pay(key="a,b")) == (400, "key-malformed")
    assert problem(service.pay(key="")) == (400, "key-empty")
    assert problem(service.pay(key="k" * 256)) == (400, "key-too-long")
    repeated = [("Idempotency-Key", "a"), ("Idempotency-Key", "b")]
    response = service.http.post("/v1/payments", json={}, headers=repeated)
    assert problem(response) == (400, "key-repeated")
    assert effects() == []


def test_who_has_no_tenant_is_refused_and_tenants_share_no_keys(
    service: Service, effects: Effects
) -> None:
    assert problem(service.pay(headers={"x-tenant": ""})) == (401, "credential-missing")
    assert service.pay(headers={"x-tenant": "a"}).status_code == 201
    assert "idempotent-replayed" not in service.pay(headers={"x-tenant": "b"}).headers
    assert effects() == ["one", "one"]


def test_a_refusal_is_kept_without_its_writes(service: Service, effects: Effects) -> None:
    first, again = service.pay("none left"), service.pay("none left")
    assert (first.status_code, first.json()) == (402, {"detail": "not enough money"})
    assert (again.status_code, again.content) == (402, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    assert effects() == []


def test_what_may_pass_is_not_kept(service: Service, effects: Effects) -> None:
    for order, status in (("later", 503), ("broken", 500)):
        for _ in range(2):
            response = service.pay(order, key=order)
            assert (response.status_code, "idempotent-replayed" in response.headers) == (
                status,
                False,
            )
    assert effects() == []


def test_a_body_that_is_no_model_is_refused_by_fastapi_and_the_key_stays_free(
    service: Service, effects: Effects
) -> None:
    wrong = service.pay(body={"cents": -1})
    assert (wrong.status_code, wrong.json()["detail"][0]["type"]) == (422, "greater_than")


def test_a_conflict_runs_the_handler_again(service: Service, effects: Effects) -> None:
    assert service.pay("conflict").status_code == 201
    assert effects() == ["conflict"]
    until_done(service, ["conflict", "conflict", "task"])


def test_of_eight_duplicates_at_once_one_runs(service: Service, effects: Effects) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: service.pay("slow"), range(8)))
    assert {(answer.status_code, answer.content) for answer in answers} == {
        (201, answers[0].content)
    }
    assert sum("idempotent-replayed" not in answer.headers for answer in answers) == 1
    assert effects() == ["slow"]


def test_safe_methods_and_other_methods_pass(service: Service) -> None:
    assert service.http.get("/v1/payments").json() == ["none"]
    assert service.http.patch("/v1/payments").status_code == 405
    assert service.http.post("/v1/nowhere").status_code == 404


def test_a_body_over_the_limit_is_refused(service: Service) -> None:
    assert problem(service.pay("x" * (1 << 20))) == (413, "body-too-large")


def test_an_unprotected_route_says_why_it_has_no_transaction() -> None:
    with pytest.raises(RuntimeError, match="once_route"):
        transaction(Request({"type": "http"}))


def test_blocking_sessions_do_as_well(url: str, effects: Effects) -> None:
    engine = create_engine(url.replace("postgres://", "postgresql+psycopg://", 1), pool_size=10)
    app = FastAPI()
    app.router.route_class = once_route(Database(sessionmaker(engine)), tenant="shop")

    @app.post("/payments", status_code=201)
    def pay(payment: Payment, db: Annotated[Session, Depends(transaction)]) -> Receipt:
        db.execute(text("INSERT INTO effects VALUES (:name)"), {"name": payment.order})
        if payment.order == "none left":
            raise HTTPException(402)
        return Receipt(payment=payment.order, cents=payment.cents)

    with (
        served(app) as address,
        httpx.Client(base_url=address) as http,
        ThreadPoolExecutor(8) as threads,
    ):

        def ask(order: str) -> httpx.Response:
            body = {"order": order, "cents": 1}
            return http.post("/payments", json=body, headers={"Idempotency-Key": order})

        answers = list(threads.map(ask, ["one"] * 8))
        assert {(answer.status_code, answer.content) for answer in answers} == {
            (201, answers[0].content)
        }
        assert ask("none left").status_code == 402
        assert ask("none left").headers["idempotent-replayed"] == "true"
    assert effects() == ["one"]
    engine.dispose()
