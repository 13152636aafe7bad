"""Same transaction with SQLAlchemy: sessions, connections and their drivers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import Connection, Engine, create_engine, text
from sqlalchemy.ext.asyncio import (
    AsyncConnection,
    AsyncSession,
    async_sessionmaker,
    create_async_engine,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, sessionmaker

from hapax_once import Answer, Operation, Refused, errors
from hapax_once.sqlalchemy import AsyncDatabase, Database

Effects = Callable[[], list[str]]


class Base(DeclarativeBase):
    pass


class Effect(Base):
    __tablename__ = "effects"
    name: Mapped[str] = mapped_column(primary_key=True)


def operation(key: str) -> Operation:
    return Operation("shop", "POST /payments", key)


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = create_engine(url.replace("postgres://", "postgresql+psycopg://", 1))
    yield engine
    engine.dispose()


def test_objects_of_a_session_are_written_once(engine: Engine, effects: Effects) -> None:
    database = Database(sessionmaker(engine))

    def work(session: Session) -> Answer:
        session.add(Effect(name="one"))
        return Answer(201)

    assert not database.once(operation("k"), work).replayed
    assert database.once(operation("k"), work).replayed
    assert effects() == ["one"]


def test_objects_that_were_never_flushed_are_taken_back_by_a_refusal(
    engine: Engine, effects: Effects
) -> None:
    database = Database(sessionmaker(engine))

    def work(session: Session) -> Answer:
        session.add(Effect(name="refused"))
        raise Refused(Answer(402))

    assert database.once(operation("k"), work).status == 402
    assert database.once(operation("k"), work).replayed
    assert effects() == []


def test_a_connection_does_as_well_as_a_session(engine: Engine, effects: Effects) -> None:
    database = Database(engine)

    def work(connection: Connection) -> Answer:
        connection.execute(text("INSERT INTO effects VALUES ('one')"))
        database.emit(connection, "paid", "k", "{}")
        return Answer(201)

    assert not database.once(operation("k"), work).replayed
    assert database.once(operation("k"), work).replayed
    assert effects() == ["one"]


def test_a_connection_in_autocommit_is_told(engine: Engine) -> None:
    database = Database(engine)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        with pytest.raises(errors.NotInTransaction):
            database.within(connection, operation("k"), lambda connection: Answer())
        with pytest.raises(errors.NotInTransaction):
            database.emit(connection, "paid", "k", "{}")


@pytest.mark.parametrize("driver", ["asyncpg", "psycopg"])
async def test_both_drivers_for_asyncio_do(url: str, effects: Effects, driver: str) -> None:
    engine = create_async_engine(url.replace("postgres://", f"postgresql+{driver}://", 1))
    sessions = AsyncDatabase(async_sessionmaker(engine))
    connections = AsyncDatabase(engine)

    async def with_session(session: AsyncSession) -> Answer:
        session.add(Effect(name="session"))
        return Answer(201, {}, b"\0\xff")

    async def with_connection(connection: AsyncConnection) -> Answer:
        await connection.execute(text("INSERT INTO effects VALUES ('connection')"))
        raise Refused(Answer(402))

    assert not (await sessions.once(operation("s"), with_session, b"\0")).replayed
    assert (await sessions.once(operation("s"), with_session, b"\0")).body == b"\0\xff"
    assert (await connections.once(operation("c"), with_connection)).status == 402
    assert effects() == ["session"]
    async with engine.connect() as connection:
        autocommit = await connection.execution_options(isolation_level="AUTOCOMMIT")
        with pytest.raises(errors.NotInTransaction):
            await connections.emit(autocommit, "paid", "k", "{}")
    await engine.dispose()
