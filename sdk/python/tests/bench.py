"""What the package costs: `once` against the same statements by hand, with the same driver.

Rounds of both alternate, on one connection; the ratio is that of the medians of all calls.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import os
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from conftest import pytest_configure

from hapax_once import Answer, Operation
from hapax_once.driver import run
from hapax_once.pytest_plugin import TestDatabase, migrated

REQUEST = b'{"cents":100}'
BODY = b'{"paid":true}'
HEADERS = {"content-type": "application/json"}

BEGIN = "SELECT * FROM hapax.begin({}, {}, {}, {}::bytea)"
INSERT = "INSERT INTO effects VALUES ({})"
FINISH = "SELECT hapax.finish({}, {}, {}, {}::jsonb, {}::bytea)"
SAVEPOINT = "SAVEPOINT work"

Call = Callable[[str], Any]


def spelled(statement: str, style: str) -> str:
    numbers = itertools.count(1)
    while "{}" in statement:
        statement = statement.replace("{}", style.replace("N", str(next(numbers))), 1)
    return statement


def answer() -> Answer:
    return Answer(201, HEADERS, BODY)


def operation(key: str) -> Operation:
    return Operation("shop", "POST /payments", key)


def ends(begun: Any) -> tuple[Any, ...]:
    """What `finish` is given, after the columns decision, operation and fence."""
    assert begun[0] == "execute"
    return begun[1], begun[2], 201, json.dumps(HEADERS), BODY


def psycopg(url: str) -> tuple[Call, Call]:
    from psycopg_pool import ConnectionPool

    from hapax_once.psycopg import Database

    pool = ConnectionPool(url, min_size=1, max_size=1, open=True)
    database = Database(pool)
    begin, insert, finish = (spelled(text, "%s") for text in (BEGIN, INSERT, FINISH))

    def by_hand(key: str) -> None:
        with pool.connection() as db, db.transaction():
            begun = db.execute(begin, ("shop", "POST /payments", key, REQUEST)).fetchone()
            db.execute(SAVEPOINT)
            db.execute(insert, (key,))
            db.execute(finish, ends(begun))

    def by_us(key: str) -> None:
        def work(db: Any) -> Answer:
            db.execute(insert, (key,))
            return answer()

        database.once(operation(key), work, REQUEST)

    return by_hand, by_us


def psycopg_async(url: str) -> tuple[Call, Call]:
    from psycopg_pool import AsyncConnectionPool

    from hapax_once.psycopg import AsyncDatabase

    pool = AsyncConnectionPool(url, min_size=1, max_size=1, open=False)
    database = AsyncDatabase(pool)
    begin, insert, finish = (spelled(text, "%s") for text in (BEGIN, INSERT, FINISH))

    async def by_hand(key: str) -> None:
        await pool.open()
        async with pool.connection() as db, db.transaction():
            asked = await db.execute(begin, ("shop", "POST /payments", key, REQUEST))
            begun = await asked.fetchone()
            await db.execute(SAVEPOINT)
            await db.execute(insert, (key,))
            await db.execute(finish, ends(begun))

    async def by_us(key: str) -> None:
        async def work(db: Any) -> Answer:
            await db.execute(insert, (key,))
            return answer()

        await pool.open()
        await database.once(operation(key), work, REQUEST)

    return by_hand, by_us


def asyncpg(url: str) -> tuple[Call, Call]:
    import asyncpg as driver

    from hapax_once.asyncpg import AsyncDatabase

    begin, insert, finish = (spelled(text, "$N") for text in (BEGIN, INSERT, FINISH))
    opened: list[Any] = []

    async def pool() -> Any:
        if not opened:
            opened.append(await driver.create_pool(url, min_size=1, max_size=1))
            opened.append(AsyncDatabase(opened[0]))
        return opened[0]

    async def by_hand(key: str) -> None:
        async with (await pool()).acquire() as db, db.transaction():
            begun = await db.fetchrow(begin, "shop", "POST /payments", key, REQUEST)
            await db.execute(SAVEPOINT)
            await db.execute(insert, key)
            await db.execute(finish, *ends(begun))

    async def by_us(key: str) -> None:
        async def work(db: Any) -> Answer:
            await db.execute(insert, key)
            return answer()

        await pool()
        await opened[1].once(operation(key), work, REQUEST)

    return by_hand, by_us


def sqlalchemy(url: str) -> tuple[Call, Call]:
    from sqlalchemy import create_engine, text

    from hapax_once.sqlalchemy import Database

    engine = create_engine(url.replace("postgres://", "postgresql+psycopg://", 1), pool_size=1)
    database = Database(engine)
    begin, insert, finish = (text(spelled(part, ":pN ")) for part in (BEGIN, INSERT, FINISH))
    names = ("p1", "p2", "p3", "p4", "p5")

    def by_hand(key: str) -> None:
        with engine.begin() as db:
            asked = dict(zip(names, ("shop", "POST /payments", key, REQUEST), strict=False))
            begun = db.execute(begin, asked).one()
            db.execute(text(SAVEPOINT))
            db.execute(insert, {"p1": key})
            db.execute(finish, dict(zip(names, ends(begun), strict=True)))

    def by_us(key: str) -> None:
        def work(db: Any) -> Answer:
            db.execute(insert, {"p1": key})
            return answer()

        database.once(operation(key), work, REQUEST)

    return by_hand, by_us


def sqlalchemy_async(url: str) -> tuple[Call, Call]:
    from sqlalchemy import text
    from sqlalchemy.ext.asyncio import create_async_engine

    from hapax_once.sqlalchemy import AsyncDatabase

    engine = create_async_engine(
        url.replace("postgres://", "postgresql+asyncpg://", 1), pool_size=1
    )
    database = AsyncDatabase(engine)
    begin, insert, finish = (text(spelled(part, ":pN ")) for part in (BEGIN, INSERT, FINISH))
    names = ("p1", "p2", "p3", "p4", "p5")

    async def by_hand(key: str) -> None:
        async with engine.begin() as db:
            asked = dict(zip(names, ("shop", "POST /payments", key, REQUEST), strict=False))
            begun = (await db.execute(begin, asked)).one()
            await db.execute(text(SAVEPOINT))
            await db.execute(insert, {"p1": key})
            await db.execute(finish, dict(zip(names, ends(begun), strict=True)))

    async def by_us(key: str) -> None:
        async def work(db: Any) -> Answer:
            await db.execute(insert, {"p1": key})
            return answer()

        await database.once(operation(key), work, REQUEST)

    return by_hand, by_us


def django(url: str) -> tuple[Call, Call]:
    import django as driver
    from django.conf import settings

    at = urlsplit(url)
    where = {"NAME": at.path[1:], "USER": at.username, "HOST": at.hostname, "PORT": at.port}
    default = {"ENGINE": "django.db.backends.postgresql", "CONN_MAX_AGE": None, **where}
    settings.configure(DATABASES={"default": default})
    driver.setup()
    from django.db import connection, transaction

    from hapax_once.django import Database

    database = Database()
    begin, insert, finish = (spelled(text, "%s") for text in (BEGIN, INSERT, FINISH))

    def by_hand(key: str) -> None:
        with transaction.atomic(), connection.cursor() as db:
            db.execute(begin, ("shop", "POST /payments", key, REQUEST))
            begun = db.fetchone()
            with transaction.atomic(), connection.cursor() as own:
                own.execute(insert, (key,))
            db.execute(finish, ends(begun))

    def by_us(key: str) -> None:
        def work(connection: Any) -> Answer:
            with connection.cursor() as db:
                db.execute(insert, (key,))
            return answer()

        database.once(operation(key), work, REQUEST)

    return by_hand, by_us


BLOCKING = {"psycopg": psycopg, "sqlalchemy": sqlalchemy, "django": django}
ASYNC = {
    "psycopg-async": psycopg_async,
    "asyncpg": asyncpg,
    "sqlalchemy-async": sqlalchemy_async,
}


async def measured(calls: tuple[Call, Call], rounds: int, size: int) -> tuple[float, float]:
    """Seconds of a call by hand, and of one by us."""
    spent: tuple[list[float], list[float]] = ([], [])
    for number in range(-1, rounds):
        both = list(enumerate(calls))
        for which, call in both if number % 2 else reversed(both):
            for turn in range(size):
                key = f"{which}-{number}-{turn}"
                began = time.perf_counter()
                called = call(key)
                if isinstance(called, Awaitable):
                    await called
                if number >= 0:
                    spent[which].append(time.perf_counter() - began)
    return statistics.median(spent[0]), statistics.median(spent[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("drivers", nargs="*", help=", ".join([*BLOCKING, *ASYNC]))
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--size", type=int, default=50)
    args = parser.parse_args()
    pytest_configure(None)
    server, command = os.environ["HAPAX_POSTGRES_URL"], os.environ.get("HAPAX_COMMAND", "hapax")
    for name in args.drivers or [*BLOCKING, *ASYNC]:
        with migrated(server, command) as url:
            TestDatabase(url).execute("CREATE TABLE effects (name text NOT NULL)")
            calls = (BLOCKING.get(name) or ASYNC[name])(url)
            measuring = measured(calls, args.rounds, args.size)
            hand, ours = run(measuring) if name in BLOCKING else asyncio.run(measuring)
        figure = {
            "driver": name,
            "hand_us": round(hand * 1e6),
            "once_us": round(ours * 1e6),
            "ratio": round(ours / hand, 3),
        }
        print(json.dumps(figure), flush=True)


if __name__ == "__main__":
    main()
