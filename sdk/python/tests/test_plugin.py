"""The fixture for users of this package, as they would use it."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

THEIRS = """
import psycopg
import pytest
from psycopg_pool import ConnectionPool

from hapax_once import Answer, Operation
from hapax_once.psycopg import Database


@pytest.fixture
def database(hapax):
    hapax.execute("CREATE TABLE IF NOT EXISTS payments (order_id text)")
    with ConnectionPool(hapax.url, min_size=1) as pool:
        yield Database(pool)


def pay(database, key):
    def work(db):
        db.execute("INSERT INTO payments VALUES ('order-17')")
        database.emit(db, "paid", "order-17", "{}")
        return Answer(201)

    return database.once(Operation("shop", "POST /payments", key), work)


def test_once(hapax, database):
    with hapax.one_effect("payments"):
        pay(database, "k")
        pay(database, "k")
    assert hapax.state("shop", "POST /payments", "k") == "completed"
    assert hapax.state("shop", "POST /payments", "other") is None
    assert hapax.events("paid") == [("order-17", b"{}")]


def test_twice(hapax, database):
    with hapax.one_effect("payments"):
        pay(database, "one")
        pay(database, "other")


def test_no_record_of_another_test_is_left(hapax, database):
    assert hapax.state("shop", "POST /payments", "one") is None
    assert hapax.events("paid") == []
    assert not pay(database, "one").replayed
"""


def test_a_user_gets_a_database_and_hears_of_two_effects(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(THEIRS)
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*there should be one effect in payments, and there are 2*"])


def test_without_a_server_it_says_what_to_name(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HAPAX_POSTGRES_URL")
    pytester.makepyfile("def test(hapax): ...")
    result = pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*hapax_postgres_url*"])
