"""The agent that the shared scenarios talk to, for every driver."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

AGENT = Path(__file__).parents[1] / "agent"
DRIVERS = ["psycopg", "psycopg-async", "asyncpg", "sqlalchemy", "sqlalchemy-async", "django"]


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_agent_answers_line_by_line(url: str, driver: str) -> None:
    once: dict[str, Any] = {
        "do": "once",
        "tenant": "shop",
        "scope": "POST /payments",
        "key": "k",
        "request": "{}",
        "work": {"write": "one", "answer": {"status": 201, "headers": {"X-A": "b"}, "body": "é"}},
    }
    commands = [once, once, {"do": "schema_version"}, {"do": "dance"}]
    heard = subprocess.run(
        [AGENT, "--driver", driver, "--database", url],
        input="".join(json.dumps(command) + "\n" for command in commands),
        capture_output=True,
        text=True,
        check=True,
    )
    ready, first, again, version, unknown = map(json.loads, heard.stdout.splitlines())
    answer = {"status": 201, "headers": {"x-a": "b"}, "body": "é", "replayed": False}
    assert ready == {"ready": True}
    assert first == {"answer": answer}
    assert again == {"answer": {**answer, "replayed": True}}
    assert version == {"ok": True}
    assert unknown["error"]["kind"] == "unknown_command"
