"""What all SDKs do alike: the files of sdk/vectors."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from conftest import cases
from psycopg_pool import ConnectionPool

from hapax_once import Answer, Operation, Request
from hapax_once.canonical_json import NotCanonical, canonical_json
from hapax_once.client.pursuit import Outgoing
from hapax_once.client.reading import History, Reading, Result, read
from hapax_once.core import refusal
from hapax_once.driver import LOST
from hapax_once.errors import HapaxError, OutcomeUnknown, of_sqlstate
from hapax_once.http import sent_headers
from hapax_once.key import quoted_key, read_key
from hapax_once.problem import CODES, Problem, problem_of
from hapax_once.psycopg import Database
from hapax_once.unit import Undo
from hapax_once.webhook import Forged, Unsigned, Untimely, verify


def label(case: dict[str, Any]) -> str:
    return json.dumps(case)[:60]


@pytest.mark.parametrize("case", cases("keys.json"), ids=label)
def test_a_key_is_read_alike(case: dict[str, Any]) -> None:
    if "key" in case:
        assert read_key(case["lines"]) == case["key"]
    else:
        with pytest.raises(Problem) as refused:
            read_key(case["lines"])
        assert refused.value.code == case["refused"]


@pytest.mark.parametrize("case", cases("quoting.json"), ids=label)
def test_a_key_is_written_so_that_it_is_read_as_itself(case: dict[str, Any]) -> None:
    assert quoted_key(case["key"]) == case["line"]
    assert read_key([case["line"]]) == case["key"]


@pytest.mark.parametrize("case", cases("canonical-json.json"), ids=label)
def test_a_json_value_has_one_spelling(case: dict[str, Any]) -> None:
    text = case["text"].encode()
    if case["canonical"] is None:
        with pytest.raises(NotCanonical):
            canonical_json(text, case["ignored"])
    else:
        assert canonical_json(text, case["ignored"]).decode() == case["canonical"]


def test_what_is_no_text_or_has_no_end_has_no_spelling() -> None:
    for text in (b"\xff", b'{"a": "\xc3"}', b"[" * 100_000, b"1e99999999999"):
        with pytest.raises(NotCanonical):
            canonical_json(text)


OURS = [case for case in cases("problems.json") if case["code"] in CODES]


@pytest.mark.parametrize("case", OURS, ids=label)
def test_a_refusal_is_the_same_document_everywhere(case: dict[str, Any]) -> None:
    problem = Problem(case["code"], "What happened.")
    assert problem.status == case["status"]
    assert sorted([name, value] for name, value in problem.headers) == case["headers"]
    assert json.loads(problem.body) == case["document"]


def test_every_refusal_of_this_package_is_known() -> None:
    assert {case["code"] for case in OURS} == set(CODES)


@pytest.mark.parametrize("case", cases("decisions.json"), ids=label)
def test_a_decision_is_told_alike(case: dict[str, Any]) -> None:
    row, answer = case["row"], case["answer"]
    if answer is None:
        assert row["decision"] == "execute"
        return
    told = refusal(row_of(row))
    if isinstance(told, Undo):
        replayed = told.answer
        assert (replayed.status, replayed.body.decode()) == (answer["status"], answer["body"])
        assert [list(pair) for pair in sent_headers(replayed)] == answer["headers"]
    else:
        assert isinstance(told, HapaxError)
        check_problem(problem_of(told), answer)
        problem = problem_of(told)
        assert problem is not None
        assert problem.differs == row.get("differs")


def row_of(row: dict[str, Any]) -> tuple[Any, ...]:
    at = row.get("expires_at")
    return (
        row["decision"],
        row.get("operation"),
        row.get("fence"),
        row.get("status"),
        json.dumps(row["headers"]) if "headers" in row else None,
        row["body"].encode() if row.get("body") is not None else None,
        row.get("retry_after"),
        row.get("differs"),
        datetime.fromisoformat(at.replace("Z", "+00:00")).timestamp() if at else None,
    )


@pytest.mark.parametrize("case", cases("errors.json"), ids=label)
def test_an_error_is_told_alike(case: dict[str, Any]) -> None:
    told = OutcomeUnknown() if " " in case["sqlstate"] else of_sqlstate(case["sqlstate"], "text")
    assert told is not None
    check_problem(problem_of(told), case)


def check_problem(problem: Problem | None, expected: dict[str, Any]) -> None:
    assert problem is not None
    for name in ("status", "code", "title", "detail", "retry_after"):
        assert getattr(problem, name) == expected[name]


@pytest.mark.parametrize("case", cases("statuses.json"), ids=label)
def test_an_answer_ends_its_transaction_alike(case: dict[str, Any]) -> None:
    assert Answer(case["status"]).ending == case["end"]


@pytest.mark.parametrize("case", cases("signatures.json"), ids=label)
def test_a_webhook_is_believed_alike(case: dict[str, Any]) -> None:
    headers = {
        "Webhook-Id": case["id"],
        "Webhook-Timestamp": case["timestamp"],
        "Webhook-Signature": case["signature"],
    }
    check: Callable[[], Any] = lambda: verify(  # noqa: E731
        case["secrets"], headers, case["body"].encode(), now=case["now"]
    )
    refusals = {"unsigned": Unsigned, "forged": Forged, "untimely": Untimely}
    if case["verified"] == "genuine":
        assert check().id == case["id"]
    else:
        with pytest.raises(refusals[case["verified"]]):
            check()


@pytest.mark.parametrize("case", cases("answers.json"), ids=label)
def test_an_answer_means_the_same_to_every_client(case: dict[str, Any]) -> None:
    answer = read(case["status"], case["headers"], b"", Outgoing("POST", "", (), b"", "k").key)
    assert (answer.verdict in ("retry", "wait")) == case["repeat"]
    for silent, expected in ((False, "conclusion"), (True, "conclusion_after_silence")):
        history = History()
        if silent:
            history.note(Reading(Result.UNANSWERED))
        history.note(answer)
        assert history.word == case[expected]


@pytest.mark.parametrize("case", cases("operations.json"), ids=label)
def test_an_operation_has_one_id(hapax: Any, case: dict[str, Any]) -> None:
    statement = "SELECT replace(hapax.operation_id(%s, %s, %s)::text, '-', '')"
    assert hapax.execute(statement, case["tenant"], case["scope"], case["key"]) == [
        (case["operation"],)
    ]


@pytest.mark.parametrize("case", cases("fingerprints.json"), ids=label)
def test_a_request_has_one_fingerprint(hapax: Any, case: dict[str, Any]) -> None:
    hapax.execute("UPDATE hapax.meta SET salt = decode(%s, 'hex')", case["salt"])
    asked = Request(case["body"], case["method"], case["path"], case["query"])
    with ConnectionPool(hapax.url, min_size=1, max_size=1) as pool:
        operation = Operation(case["tenant"], "scope", "k")
        Database(pool).once(operation, lambda connection: Answer(), asked)
    stored = hapax.execute("SELECT encode(fingerprint, 'hex') FROM hapax.operations")
    assert stored == [(case["fingerprint"],)]


def test_a_lost_connection_is_told_as_one_of_its_class() -> None:
    told = of_sqlstate(LOST, "closed")
    assert told is not None
    assert told.kind == "unavailable"
