"""A fixture for pytest: `hapax` is a database with the schema, without a record of an earlier test.

The database is made for the session and dropped at its end, on the server that `hapax_postgres_url`
of the ini file, or `HAPAX_POSTGRES_URL`, names. The program `hapax` installs the schema;
`hapax_command`, or `HAPAX_COMMAND`, says where it is. Your own tables are yours to make and empty.
"""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import pytest

if TYPE_CHECKING:
    import psycopg


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("hapax_postgres_url", "a PostgreSQL server for the fixture `hapax`")
    parser.addini("hapax_command", "the program `hapax`, which installs the schema")


TABLES = """SELECT c.oid::regclass::text FROM pg_class AS c
WHERE c.relnamespace = 'hapax'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition"""


class TestDatabase:
    """A database with the schema, and what a test wants to know of it."""

    __test__ = False

    def __init__(self, url: str) -> None:
        self.url = url
        self.tables = [table for (table,) in self.execute(TABLES)]
        self.filled_from_the_start = self.filled()

    def filled(self) -> set[str]:
        """The tables of Hapax that are not empty."""
        looks = (f"SELECT '{table}' WHERE EXISTS (SELECT FROM {table})" for table in self.tables)
        return {table for (table,) in self.execute(" UNION ALL ".join(looks))}

    def forget(self) -> None:
        """Deletes every record of Hapax: operations, events, messages."""
        for table in sorted(self.filled() - self.filled_from_the_start):
            self.execute(f"DELETE FROM {table}")

    def execute(self, statement: str, *args: object) -> list[tuple[Any, ...]]:
        """Runs a statement on a connection of its own, and returns its rows."""
        with connect(self.url) as connection:
            cursor = connection.execute(statement.encode(), args or None)
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def one_effect(self, table: str) -> Iterator[None]:
        """Fails unless what is done inside adds exactly one row to the table."""
        count = f"SELECT count(*) FROM {table}"
        before = self.execute(count)[0][0]
        yield
        added = self.execute(count)[0][0] - before
        assert added == 1, f"there should be one effect in {table}, and there are {added}"

    def state(self, tenant: str, scope: str, key: str) -> str | None:
        """What is stored of an operation: `completed`, `failed` or `running`; None for nothing."""
        rows = self.execute("SELECT state FROM hapax.status(%s, %s, %s)", tenant, scope, key)
        return rows[0][0] if rows else None

    def events(self, topic: str) -> list[tuple[str, bytes]]:
        """Key and payload of every event of a topic that was committed, in their order."""
        statement = "SELECT key, payload FROM hapax.outbox WHERE topic = %s ORDER BY position"
        return [(key, bytes(payload)) for key, payload in self.execute(statement, topic)]


@pytest.fixture(scope="session")
def hapax_database(pytestconfig: pytest.Config) -> Iterator[TestDatabase]:
    """A database with the schema, for all tests."""
    server = pytestconfig.getini("hapax_postgres_url") or os.environ.get("HAPAX_POSTGRES_URL")
    if not server:
        pytest.fail("name a server: hapax_postgres_url in the ini file, or HAPAX_POSTGRES_URL")
    command = pytestconfig.getini("hapax_command") or os.environ.get("HAPAX_COMMAND", "hapax")
    with migrated(server, command) as url:
        yield TestDatabase(url)


@pytest.fixture
def hapax(hapax_database: TestDatabase) -> TestDatabase:
    """A database with the schema of Hapax, and without its records."""
    hapax_database.forget()
    return hapax_database


@contextmanager
def migrated(server: str, command: str) -> Iterator[str]:
    """The address of a new database with the schema, dropped at the end."""
    name = f"hapax_test_{uuid.uuid4().hex[:12]}"
    url = urlunsplit(urlsplit(server)._replace(path=f"/{name}"))
    with connect(server) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    try:
        subprocess.run([command, "migrate", "--store", url], check=True, stdout=subprocess.DEVNULL)
        yield url
    finally:
        with connect(server) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def connect(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    import psycopg

    return psycopg.connect(url, autocommit=True)
