"""Same transaction with psycopg 3: what the shared scenarios do not look at."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from hapax_once import Answer, Operation, Options, Refused, Request, errors
from hapax_once.psycopg import AsyncDatabase, Database

Connection = psycopg.Connection[Any]
Effects = Callable[[], list[str]]


@pytest.fixture
def pool(url: str) -> Iterator[ConnectionPool[Any]]:
    with ConnectionPool(url, min_size=1, max_size=4, timeout=5) as pool:
        yield pool


@pytest.fixture
def database(pool: ConnectionPool[Any]) -> Database:
    return Database(pool)


@pytest.fixture
async def async_pool(url: str) -> AsyncIterator[AsyncConnectionPool[Any]]:
    async with AsyncConnectionPool(url, min_size=1, max_size=4, open=False) as pool:
        yield pool


def operation(key: str) -> Operation:
    return Operation("shop", "POST /payments", key)


def paying(name: str) -> Callable[[Connection], Answer]:
    def work(connection: Connection) -> Answer:
        connection.execute("INSERT INTO effects VALUES (%s)", (name,))
        return Answer.json({"paid": name}, 201)

    return work


def test_an_answer_is_replayed_with_all_that_it_had(database: Database) -> None:
    said = Answer(201, {"x-a": ["b", "c"], "content-type": "image/png"}, bytes(range(256)))
    first = database.once(operation("k"), lambda connection: said, b"\0\xff")
    again = database.once(operation("k"), lambda connection: said, b"\0\xff")
    assert (first.status, first.headers, first.body) == (said.status, said.headers, said.body)
    assert (again.status, again.headers, again.body) == (said.status, said.headers, said.body)
    assert (first.replayed, again.replayed) == (False, True)
    assert first.expires_at == again.expires_at is not None


def test_work_may_use_its_own_savepoints_and_row_factories(
    database: Database, effects: Effects
) -> None:
    def work(connection: Connection) -> Answer:
        connection.row_factory = psycopg.rows.dict_row
        with pytest.raises(psycopg.errors.DivisionByZero), connection.transaction():
            connection.execute("SELECT 1 / 0")
        return paying("one")(connection)

    assert database.once(operation("k"), work).status == 201
    assert effects() == ["one"]


def test_work_cannot_commit_by_itself(database: Database, effects: Effects) -> None:
    def work(connection: Connection) -> Answer:
        connection.execute("INSERT INTO effects VALUES ('early')")
        connection.commit()
        return Answer()

    with pytest.raises(psycopg.ProgrammingError):
        database.once(operation("k"), work)
    assert effects() == []
    assert not database.once(operation("k"), paying("one")).replayed


@pytest.mark.parametrize("error", [OSError("disk"), TimeoutError("bank"), KeyError("x")])
def test_what_work_raises_goes_on_as_it_is(
    database: Database, effects: Effects, error: Exception
) -> None:
    def work(connection: Connection) -> Answer:
        paying("one")(connection)
        raise error

    with pytest.raises(type(error)) as raised:
        database.once(operation("k"), work)
    assert raised.value is error
    assert effects() == []


def test_an_error_of_the_callers_own_tables_is_its_own(database: Database) -> None:
    def work(connection: Connection) -> Answer:
        connection.execute("SELECT * FROM missing")
        return Answer()

    with pytest.raises(psycopg.errors.UndefinedTable):
        database.once(operation("k"), work)


def test_a_conflict_that_work_wraps_is_tried_again(database: Database, effects: Effects) -> None:
    calls: list[str] = []

    def work(connection: Connection) -> Answer:
        calls.append("called")
        if len(calls) < 3:
            try:
                connection.execute("DO $$BEGIN RAISE SQLSTATE '40001'; END$$")
            except psycopg.Error as error:
                raise ValueError("wrapped") from error
        return paying("one")(connection)

    assert not database.once(operation("k"), work).replayed
    assert (len(calls), effects()) == (3, ["one"])


def test_conflicts_each_time_are_told_after_six_tries(database: Database) -> None:
    calls: list[str] = []

    def work(connection: Connection) -> Answer:
        calls.append("called")
        connection.execute("DO $$BEGIN RAISE SQLSTATE '40P01'; END$$")
        return Answer()

    with pytest.raises(errors.Conflict):
        database.once(operation("k"), work)
    assert len(calls) == 6


def test_a_connection_that_is_lost_in_the_work_leaves_nothing(
    database: Database, effects: Effects
) -> None:
    def work(connection: Connection) -> Answer:
        paying("one")(connection)
        connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return Answer()

    with pytest.raises(errors.Unavailable):
        database.once(operation("k"), work)
    assert effects() == []


@pytest.mark.parametrize("returned", [None, "paid", 201, {"status": 201}])
def test_work_that_returns_something_else_is_told(
    database: Database, effects: Effects, returned: Any
) -> None:
    def work(connection: Connection) -> Any:
        paying("one")(connection)
        return returned

    with pytest.raises(errors.Invalid):
        database.once(operation("k"), work)
    assert effects() == []


def test_asynchronous_work_on_a_blocking_database_is_told(
    database: Database, effects: Effects
) -> None:
    async def work(connection: Connection) -> Answer:
        paying("one")(connection)
        await asyncio.sleep(0)
        return Answer()

    with pytest.raises(errors.Invalid, match="AsyncDatabase"):
        database.once(operation("k"), work)  # type: ignore[arg-type]
    assert effects() == []


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Operation("shop", "POST /", 7),  # type: ignore[arg-type]
        lambda: Request({"cents": 1}),  # type: ignore[arg-type]
        lambda: Request(b"", method=None),  # type: ignore[arg-type]
        lambda: Options(wait=2),  # type: ignore[arg-type]
        lambda: Options(isolation="chaos"),  # type: ignore[arg-type]
        lambda: Answer("200"),  # type: ignore[arg-type]
        lambda: Answer(200, {}, "text"),  # type: ignore[arg-type]
        lambda: Answer(200, {"a": 1}),  # type: ignore[dict-item]
        lambda: Refused(Answer(200)),
    ],
)
def test_an_argument_of_the_wrong_type_is_told_before_anything_is_sent(
    wrong: Callable[[], Any],
) -> None:
    with pytest.raises(errors.Invalid):
        wrong()


def test_terms_beyond_their_bounds_are_told(database: Database) -> None:
    with pytest.raises(errors.Invalid, match="retention"):
        database.once(operation("k"), paying("one"), options=Options(retention=timedelta()))


def test_what_raises_within_leaves_the_callers_transaction_whole(
    database: Database, pool: ConnectionPool[Any], effects: Effects
) -> None:
    def work(connection: Connection) -> Answer:
        paying("inner")(connection)
        connection.execute("SELECT 1 / 0")
        return Answer()

    with pool.connection() as connection:
        connection.execute("INSERT INTO effects VALUES ('outer')")
        with pytest.raises(psycopg.errors.DivisionByZero):
            database.within(connection, operation("k"), work)
    assert effects() == ["outer"]
    assert not database.once(operation("k"), paying("one")).replayed


def test_an_answer_that_is_not_kept_takes_its_writes_back_within(
    database: Database, pool: ConnectionPool[Any], effects: Effects
) -> None:
    def work(connection: Connection) -> Answer:
        paying("inner")(connection)
        return Answer(503)

    with pool.connection() as connection:
        connection.execute("INSERT INTO effects VALUES ('outer')")
        assert database.within(connection, operation("k"), work).status == 503
    assert effects() == ["outer"]
    assert not database.once(operation("k"), paying("one")).replayed


def test_a_refusal_within_work_takes_back_what_came_before_it(
    database: Database, effects: Effects
) -> None:
    def work(connection: Connection) -> Answer:
        paying("outer")(connection)
        database.within(connection, operation("inner"), paying("inner"))
        raise Refused(Answer(402))

    assert database.once(operation("outer"), work).status == 402
    assert effects() == []
    assert not database.once(operation("inner"), paying("inner")).replayed


def test_emitting_and_delivering_need_a_transaction(
    database: Database, pool: ConnectionPool[Any], hapax: Any
) -> None:
    with pool.connection() as connection:
        connection.autocommit = True
        with pytest.raises(errors.NotInTransaction):
            database.emit(connection, "paid", "k", "{}")
        with pytest.raises(errors.NotInTransaction):
            database.first_delivery(connection, "mailer", "m-1")
        connection.autocommit = False
    assert hapax.events("paid") == []
    with pool.connection() as connection:
        database.emit(connection, "paid", "k", b'{"cents":1}', headers={"x-a": "b"})
        assert database.first_delivery(connection, "mailer", "m-1", b"hello")
        assert not database.first_delivery(connection, "mailer", "m-1", b"hello")
    assert hapax.events("paid") == [("k", b'{"cents":1}')]


def test_an_event_that_cannot_be_one_is_told(database: Database, pool: ConnectionPool[Any]) -> None:
    with pool.connection() as connection:
        with pytest.raises(errors.Invalid):
            database.emit(connection, "", "k", "{}")
        connection.rollback()
        with pytest.raises(errors.Invalid):
            database.emit(connection, "paid", "k", {"cents": 1})  # type: ignore[arg-type]
        with pytest.raises(errors.Invalid):
            database.emit(connection, "paid", 7, "{}")  # type: ignore[arg-type]


def test_the_schema_is_looked_at_once(database: Database, hapax: Any) -> None:
    database.once(operation("one"), paying("one"))
    hapax.execute("UPDATE hapax.meta SET version = 9, works_with = 9")
    database.once(operation("two"), paying("two"))
    with pytest.raises(errors.SchemaVersion, match="hapax migrate"):
        database.check_schema()
    hapax.execute("UPDATE hapax.meta SET version = 99, works_with = 99")
    with pytest.raises(errors.SchemaVersion, match="update hapax-once"):
        database.check_schema()
    hapax.execute("UPDATE hapax.meta SET version = 10, works_with = 10")


def test_a_decision_that_is_not_known_is_an_error_and_runs_nothing(
    database: Database, effects: Effects, hapax: Any
) -> None:
    hapax.execute("ALTER FUNCTION hapax.begin_bytes RENAME TO begin_as_it_was")
    hapax.execute(
        """CREATE FUNCTION hapax.begin_bytes(text, text, text, bytea, text, text, text, interval,
               interval, interval) RETURNS hapax.begun LANGUAGE sql AS
           $$ SELECT ('defer', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)::hapax.begun $$"""
    )
    with pytest.raises(errors.UnknownDecision, match="defer"):
        database.once(operation("k"), paying("one"))
    assert effects() == []
    hapax.execute("DROP FUNCTION hapax.begin_bytes")
    hapax.execute("ALTER FUNCTION hapax.begin_as_it_was RENAME TO begin_bytes")


async def test_cancelled_work_leaves_nothing(
    async_pool: AsyncConnectionPool[Any], effects: Effects
) -> None:
    database, started = AsyncDatabase(async_pool), asyncio.Event()

    async def work(connection: psycopg.AsyncConnection[Any]) -> Answer:
        await connection.execute("INSERT INTO effects VALUES ('cancelled')")
        started.set()
        await asyncio.sleep(60)
        return Answer()

    task = asyncio.create_task(database.once(operation("k"), work))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert effects() == []

    async def pay(connection: psycopg.AsyncConnection[Any]) -> Answer:
        await connection.execute("INSERT INTO effects VALUES ('one')")
        return Answer()

    assert not (await database.once(operation("k"), pay)).replayed
    assert effects() == ["one"]
