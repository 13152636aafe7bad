"""WSGI: a middleware around an application."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import httpx
import pytest
from psycopg_pool import ConnectionPool

from hapax_once.http import TRANSACTION
from hapax_once.psycopg import Database
from hapax_once.wsgi import Middleware

Effects = Callable[[], list[str]]


class Closing:
    """What an application returns that wants to know when it was sent."""

    def __init__(self, parts: list[bytes], closed: list[str]) -> None:
        self.parts = parts
        self.closed = closed

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.parts)

    def close(self) -> None:
        self.closed.append("closed")


class App:
    def __init__(self) -> None:
        self.closed: list[str] = []

    def __call__(self, environ: Any, start_response: Any) -> Iterable[bytes]:
        body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0)).decode()
        if TRANSACTION in environ:
            environ[TRANSACTION].execute("INSERT INTO effects VALUES (%s)", (body,))
        if body == "broken":
            raise RuntimeError("broken")
        status = "402 Payment Required" if body == "none left" else "201 Created"
        headers = [
            ("Content-Type", "text/plain"),
            ("X-A", "b"),
            ("X-A", "c"),
            ("Set-Cookie", "s=1"),
        ]
        write = start_response(status, headers)
        write(b"paid ")
        return Closing([b"for ", body.encode()], self.closed)


@pytest.fixture
def app() -> App:
    return App()


@pytest.fixture
def http(url: str, app: App) -> Iterator[httpx.Client]:
    with ConnectionPool(url, min_size=1, max_size=4) as pool:
        wrapped = Middleware(
            app,
            Database(pool),
            tenant=lambda environ: environ.get("HTTP_X_TENANT", "shop"),
            protects=lambda environ: environ["PATH_INFO"] != "/free",
        )
        with httpx.Client(transport=httpx.WSGITransport(wrapped), base_url="http://x") as client:
            yield client


def key(name: str) -> dict[str, str]:
    return {"Idempotency-Key": name}


def test_the_first_answer_is_replayed(http: httpx.Client, app: App, effects: Effects) -> None:
    first = http.post("/payments?a=1", content="one", headers=key("k"))
    again = http.post("/payments?a=1", content="one", headers=key("k"))
    assert (
        (first.status_code, first.text) == (again.status_code, again.text) == (201, "paid for one")
    )
    assert again.headers["idempotent-replayed"] == "true"
    assert first.headers["idempotency-expires"] == again.headers["idempotency-expires"]
    assert first.headers.get_list("x-a") == again.headers.get_list("x-a") == ["b", "c"]
    assert ("set-cookie" in first.headers, "set-cookie" in again.headers) == (True, False)
    assert (effects(), app.closed) == (["one"], ["closed"])


def test_a_refusal_is_kept_and_an_error_is_not(
    http: httpx.Client, app: App, effects: Effects
) -> None:
    assert http.post("/payments", content="none left", headers=key("a")).status_code == 402
    again = http.post("/payments", content="none left", headers=key("a"))
    assert again.headers["idempotent-replayed"] == "true"
    for _ in range(2):
        with pytest.raises(RuntimeError, match="broken"):
            http.post("/payments", content="broken", headers=key("b"))
    assert effects() == []


def test_problems_are_told(http: httpx.Client, effects: Effects) -> None:
    assert http.post("/payments").json()["code"] == "key-missing"
    http.post("/payments", content="one", headers=key("k"))
    other = http.post("/payments", content="two", headers=key("k"))
    assert (other.status_code, other.json()["differs"]) == (422, ["body"])
    large = http.post("/payments", content="x" * ((1 << 20) + 1), headers=key("l"))
    assert (large.status_code, large.json()["code"]) == (413, "body-too-large")
    assert effects() == ["one"]


def test_what_is_not_protected_passes(http: httpx.Client) -> None:
    assert http.post("/free", content="x").text.endswith("for x")
    assert http.get("/payments").status_code == 201
