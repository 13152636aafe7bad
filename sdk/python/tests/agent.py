"""The agent of this SDK, as ../conformance.md describes it."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)
from copy import copy
from datetime import timedelta
from typing import Any

import agent_http

from hapax_once import Answer, Failed, HapaxError, Message, Operation, Options, Refused, Request
from hapax_once.consumer import AsyncConsumer, Consumer
from hapax_once.database import AsyncDatabase, Database

CONNECTIONS = 10
CONNECT_SECONDS = 5
INSERT = "INSERT INTO effects (name) VALUES ("
FAILING = "SELECT 1 / 0"

Command = dict[str, Any]


class Raised(Exception):
    """What the work raises by itself."""


class RolledBack(Exception):
    """Takes the agent's own transaction back."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer


def answer_of(document: dict[str, Any]) -> Answer:
    return Answer(document["status"], document["headers"], document["body"].encode())


def asked(command: Command) -> tuple[Operation, Request, Options]:
    """What a command asks for; what it leaves out is the SDK's own default."""
    operation = Operation(command["tenant"], command["scope"], command["key"])
    parts = {name: command[name] for name in ("method", "path", "query") if name in command}
    spans = {
        "retention": ("retention_s", 1.0),
        "tombstone": ("tombstone_s", 1.0),
        "wait": ("wait_ms", 0.001),
    }
    options: dict[str, Any] = {
        name: timedelta(seconds=command[member] * unit)
        for name, (member, unit) in spans.items()
        if member in command
    }
    if "isolation" in command:
        options["isolation"] = command["isolation"]
    return operation, Request(command["request"], **parts), Options(**options)


def last_word(work: dict[str, Any]) -> Answer:
    """What the work does when its writes are made."""
    if work.get("die"):
        os.kill(os.getpid(), signal.SIGKILL)
    if "raise" in work:
        raise Raised(work["raise"])
    if "refuse" in work:
        refused = work["refuse"]
        raise Failed(refused["reason"]) if "reason" in refused else Refused(answer_of(refused))
    return answer_of(work["answer"]) if "answer" in work else Answer()


def told(answer: Answer) -> dict[str, Any]:
    headers = {name.lower(): value for name, value in answer.headers.items()}
    body = answer.body.decode()
    document = {
        "status": answer.status,
        "headers": headers,
        "body": body,
        "replayed": answer.replayed,
    }
    return {"answer": document}


def error_of(error: Exception) -> dict[str, Any]:
    kind = error.kind if isinstance(error, HapaxError) else "raised"
    retry_after, differs = getattr(error, "retry_after", None), getattr(error, "differs", None)
    return {
        "error": {
            "kind": kind,
            "message": str(error),
            "retry_after": retry_after,
            "differs": differs,
        }
    }


def unknown_command(command: Command) -> dict[str, Any]:
    return {"error": {"kind": "unknown_command", "message": f"there is no such command: {command}"}}


class Blocking:
    """An agent on a blocking driver."""

    database: Database[Any]

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(CONNECTIONS)

    def execute(self, connection: Any, statement: str, *args: object) -> None:
        raise NotImplementedError

    def transaction(self) -> AbstractContextManager[Any]:
        raise NotImplementedError

    def autocommit(self) -> AbstractContextManager[Any]:
        raise NotImplementedError

    def serve(self) -> None:
        print(json.dumps({"ready": True}), flush=True)
        for line in sys.stdin:
            # On the threads as well: what a connection belongs to, it stays with.
            told = self.threads.submit(self.heed, json.loads(line)).result()
            print(json.dumps(told), flush=True)

    def heed(self, command: Command) -> dict[str, Any]:
        try:
            match command["do"]:
                case "once":
                    operation, request, options = asked(command)
                    return told(self.database.once(operation, self.work(command), request, options))
                case "within":
                    return told(self.within(command))
                case "storm":
                    one = {**command, "do": "once"}
                    calls = [
                        self.threads.submit(self.heed, one) for _ in range(command["times"] - 1)
                    ]
                    return {"answers": [self.heed(one), *(call.result() for call in calls)]}
                case "deliver":
                    return self.deliver(command)
                case "schema_version":
                    self.database.check_schema()
                    return {"ok": True}
                case _:
                    return unknown_command(command)
        except Exception as error:
            return error_of(error)

    def work(self, command: Command) -> Any:
        work = command["work"]

        def run(connection: Any, message: Message | None = None) -> Answer:
            time.sleep(work.get("pause_ms", 0) / 1000)
            if "write" in work:
                self.execute(connection, INSERT, work["write"])
            if nested := work.get("nested"):
                database = self.database
                if nested["by"] == "another":
                    database = Database(copy(database.driver))
                operation, request, options = asked(nested)
                database.once(operation, self.work(nested), request, options)
            if event := work.get("emit"):
                self.database.emit(connection, event["topic"], event["key"], event["payload"])
            return last_word(work)

        return run

    def within(self, command: Command) -> Answer:
        operation, request, options = asked(command)
        how, work = command["how"], self.work(command)
        connecting = self.autocommit() if how == "autocommit" else self.transaction()
        try:
            with connecting as connection:
                if how == "aborted":
                    try:
                        self.execute(connection, FAILING)
                    except Exception:
                        print("aborted, as asked", file=sys.stderr)
                if how == "twice":
                    work = self.twice(command)
                answer = self.database.within(connection, operation, work, request, options)
                if how == "rollback":
                    raise RolledBack(answer)
        except RolledBack as rolled_back:
            return rolled_back.answer
        return answer

    def twice(self, command: Command) -> Any:
        """Work that begins its own operation again: once it is ended, it would be replayed."""
        operation, request, options = asked(command)
        work = self.work(command)
        return lambda connection: self.database.within(
            connection, operation, work, request, options
        )

    def deliver(self, command: Command) -> dict[str, Any]:
        consumer = Consumer(
            command["consumer"],
            self.database,
            self.work(command),
            attempts_max=command["attempts_max"],
        )
        outcome = consumer.deliver(Message(command["message_id"], command["content"].encode()))
        return {"outcome": "done" if outcome.is_done else "again", "acted": outcome.acted}


class Psycopg(Blocking):
    def __init__(self, url: str) -> None:
        from psycopg_pool import ConnectionPool

        from hapax_once.psycopg import Database

        super().__init__()
        self.pool = ConnectionPool(
            url,
            min_size=0,
            max_size=CONNECTIONS,
            timeout=CONNECT_SECONDS,
            reconnect_timeout=1,
            open=True,
        )
        self.database = Database(self.pool)

    def execute(self, connection: Any, statement: str, *args: object) -> None:
        connection.execute(f"{statement}%s)" if args else statement, args)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        with self.pool.connection() as connection:
            yield connection

    @contextmanager
    def autocommit(self) -> Iterator[Any]:
        with self.pool.connection() as connection:
            connection.autocommit = True
            try:
                yield connection
            finally:
                connection.autocommit = False


class SqlAlchemy(Blocking):
    def __init__(self, url: str) -> None:
        from sqlalchemy import create_engine
        from sqlalchemy.orm import sessionmaker

        from hapax_once.sqlalchemy import Database

        super().__init__()
        url = url.replace("postgres://", "postgresql+psycopg://", 1)
        self.engine = create_engine(url, pool_size=CONNECTIONS, max_overflow=0)
        self.sessions = sessionmaker(self.engine)
        self.database = Database(self.sessions)

    def execute(self, connection: Any, statement: str, *args: object) -> None:
        from sqlalchemy import text

        connection.execute(
            text(f"{statement}:name)" if args else statement), {"name": args[0]} if args else {}
        )

    def transaction(self) -> AbstractContextManager[Any]:
        return self.sessions.begin()

    @contextmanager
    def autocommit(self) -> Iterator[Any]:
        with self.sessions(
            bind=self.engine.execution_options(isolation_level="AUTOCOMMIT")
        ) as session:
            yield session


class Django(Blocking):
    def __init__(self, url: str) -> None:
        from urllib.parse import urlsplit

        import django
        from django.conf import settings

        super().__init__()
        at = urlsplit(url)
        settings.configure(
            DATABASES={
                "default": {
                    "ENGINE": "django.db.backends.postgresql",
                    "NAME": at.path.lstrip("/"),
                    "USER": at.username,
                    "HOST": at.hostname,
                    "PORT": at.port,
                    "CONN_MAX_AGE": None,
                    "OPTIONS": {"connect_timeout": CONNECT_SECONDS},
                }
            }
        )
        django.setup()
        from hapax_once.django import Database

        self.database = Database()

    def execute(self, connection: Any, statement: str, *args: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"{statement}%s)" if args else statement, args)

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        from django.db import connection, transaction

        with transaction.atomic():
            yield connection

    @contextmanager
    def autocommit(self) -> Iterator[Any]:
        from django.db import connection

        yield connection


class Async:
    """An agent on a driver for asyncio."""

    database: AsyncDatabase[Any]

    async def open(self, url: str) -> None:
        raise NotImplementedError

    async def execute(self, connection: Any, statement: str, *args: object) -> None:
        raise NotImplementedError

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        raise NotImplementedError

    def autocommit(self) -> AbstractAsyncContextManager[Any]:
        raise NotImplementedError

    async def serve(self, url: str) -> None:
        await self.open(url)
        print(json.dumps({"ready": True}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(json.dumps(await self.heed(json.loads(line))), flush=True)

    async def heed(self, command: Command) -> dict[str, Any]:
        try:
            match command["do"]:
                case "once":
                    operation, request, options = asked(command)
                    return told(
                        await self.database.once(operation, self.work(command), request, options)
                    )
                case "within":
                    return told(await self.within(command))
                case "storm":
                    one = {**command, "do": "once"}
                    return {
                        "answers": await asyncio.gather(
                            *(self.heed(one) for _ in range(command["times"]))
                        )
                    }
                case "deliver":
                    return await self.deliver(command)
                case "schema_version":
                    await self.database.check_schema()
                    return {"ok": True}
                case "serve":
                    return {"port": agent_http.serve(self.database, self.write)}
                case _:
                    return unknown_command(command)
        except Exception as error:
            return error_of(error)

    def work(self, command: Command) -> Any:
        work = command["work"]

        async def run(connection: Any, message: Message | None = None) -> Answer:
            await asyncio.sleep(work.get("pause_ms", 0) / 1000)
            if "write" in work:
                await self.write(connection, work["write"])
            if nested := work.get("nested"):
                database = self.database
                if nested["by"] == "another":
                    database = AsyncDatabase(copy(database.driver))
                operation, request, options = asked(nested)
                await database.once(operation, self.work(nested), request, options)
            if event := work.get("emit"):
                await self.database.emit(connection, event["topic"], event["key"], event["payload"])
            return last_word(work)

        return run

    async def write(self, connection: Any, name: str) -> None:
        await self.execute(connection, INSERT, name)

    async def within(self, command: Command) -> Answer:
        operation, request, options = asked(command)
        how, work = command["how"], self.work(command)
        connecting = self.autocommit() if how == "autocommit" else self.transaction()
        try:
            async with connecting as connection:
                if how == "aborted":
                    try:
                        await self.execute(connection, FAILING)
                    except Exception:
                        print("aborted, as asked", file=sys.stderr)
                if how == "twice":
                    work = self.twice(command)
                answer = await self.database.within(connection, operation, work, request, options)
                if how == "rollback":
                    raise RolledBack(answer)
        except RolledBack as rolled_back:
            return rolled_back.answer
        return answer

    def twice(self, command: Command) -> Any:
        """Work that begins its own operation again: once it is ended, it would be replayed."""
        operation, request, options = asked(command)
        work = self.work(command)
        return lambda connection: self.database.within(
            connection, operation, work, request, options
        )

    async def deliver(self, command: Command) -> dict[str, Any]:
        consumer = AsyncConsumer(
            command["consumer"],
            self.database,
            self.work(command),
            attempts_max=command["attempts_max"],
        )
        outcome = await consumer.deliver(
            Message(command["message_id"], command["content"].encode())
        )
        return {"outcome": "done" if outcome.is_done else "again", "acted": outcome.acted}


class PsycopgAsync(Async):
    async def open(self, url: str) -> None:
        from psycopg_pool import AsyncConnectionPool

        from hapax_once.psycopg import AsyncDatabase

        self.pool = AsyncConnectionPool(
            url,
            min_size=0,
            max_size=CONNECTIONS,
            timeout=CONNECT_SECONDS,
            reconnect_timeout=1,
            open=False,
        )
        await self.pool.open()
        self.database = AsyncDatabase(self.pool)

    async def execute(self, connection: Any, statement: str, *args: object) -> None:
        await connection.execute(f"{statement}%s)" if args else statement, args)

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return self.pool.connection()

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[Any]:
        async with self.pool.connection() as connection:
            await connection.set_autocommit(True)
            try:
                yield connection
            finally:
                await connection.set_autocommit(False)


class Asyncpg(Async):
    async def open(self, url: str) -> None:
        import asyncpg

        from hapax_once.asyncpg import AsyncDatabase

        pool = asyncpg.create_pool(url, min_size=0, max_size=CONNECTIONS, timeout=CONNECT_SECONDS)
        self.pool = await pool
        self.database = AsyncDatabase(self.pool)

    async def execute(self, connection: Any, statement: str, *args: object) -> None:
        await connection.execute(f"{statement}$1)" if args else statement, *args)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        async with self.pool.acquire() as connection, connection.transaction():
            yield connection

    def autocommit(self) -> AbstractAsyncContextManager[Any]:
        return self.pool.acquire()


class SqlAlchemyAsync(Async):
    async def open(self, url: str) -> None:
        from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine

        from hapax_once.sqlalchemy import AsyncDatabase

        url = url.replace("postgres://", "postgresql+asyncpg://", 1)
        self.engine = create_async_engine(url, pool_size=CONNECTIONS, max_overflow=0)
        self.sessions = async_sessionmaker(self.engine)
        self.database = AsyncDatabase(self.sessions)

    async def execute(self, connection: Any, statement: str, *args: object) -> None:
        from sqlalchemy import text

        bound = text(f"{statement}:name)" if args else statement)
        await connection.execute(bound, {"name": args[0]} if args else {})

    def transaction(self) -> AbstractAsyncContextManager[Any]:
        return self.sessions.begin()

    @asynccontextmanager
    async def autocommit(self) -> AsyncIterator[Any]:
        async with self.sessions(
            bind=self.engine.execution_options(isolation_level="AUTOCOMMIT")
        ) as session:
            yield session


BLOCKING = {"psycopg": Psycopg, "sqlalchemy": SqlAlchemy, "django": Django}
ASYNC = {"psycopg-async": PsycopgAsync, "asyncpg": Asyncpg, "sqlalchemy-async": SqlAlchemyAsync}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--driver", required=True, choices=[*BLOCKING, *ASYNC])
    parser.add_argument("--database", required=True)
    args = parser.parse_args()
    if args.driver in BLOCKING:
        BLOCKING[args.driver](args.database).serve()
    else:
        asyncio.run(ASYNC[args.driver]().serve(args.database))


if __name__ == "__main__":
    main()
