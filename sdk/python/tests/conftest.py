"""The servers that the tests run on, as ../conformance.md names them."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn

REPOSITORY = Path(__file__).parents[3]
VECTORS = REPOSITORY / "sdk" / "vectors"
EFFECTS = "CREATE TABLE IF NOT EXISTS effects (name text NOT NULL)"


def service(name: str) -> str | None:
    """Where a server is, if it runs."""
    path = REPOSITORY / ".services" / f"{name}.url"
    found = os.environ.get(f"HAPAX_{name.upper()}_URL") or (
        path.read_text() if path.exists() else ""
    )
    return found.strip() or None


def needed(name: str) -> str:
    """Where a server is. Without it a test is not checked, which in CI is a failure."""
    url = service(name)
    if url is None:
        assert os.environ.get("CI") != "true", f"there is no {name}"
        pytest.skip(f"NOT CHECKED: there is no {name}: run `cargo xtask services up`")
    return url


def cases(file: str) -> list[dict[str, Any]]:
    """The cases of a file of vectors."""
    document = json.loads((VECTORS / file).read_text())
    listed: list[dict[str, Any]] = document["cases"]
    return listed


def pytest_configure(config: pytest.Config | None) -> None:
    if url := service("postgres"):
        os.environ["HAPAX_POSTGRES_URL"] = url
    built = [REPOSITORY / "target" / profile / "hapax" for profile in ("debug", "release", "dist")]
    for program in built:
        if "HAPAX_COMMAND" not in os.environ and program.exists():
            os.environ["HAPAX_COMMAND"] = str(program)


@pytest.fixture
def url(hapax: Any) -> str:
    """A database with the schema and an empty table of effects."""
    hapax.execute(EFFECTS)
    hapax.execute("DELETE FROM effects")
    found: str = hapax.url
    return found


@pytest.fixture
def effects(hapax: Any) -> Callable[[], list[str]]:
    """The names of all effects."""
    return lambda: [name for (name,) in hapax.execute("SELECT name FROM effects ORDER BY name")]


@contextmanager
def served(app: Any) -> Iterator[str]:
    """An ASGI application on a port of its own."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listener.close()
