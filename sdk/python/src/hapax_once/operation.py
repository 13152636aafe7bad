"""What names an operation, what it is asked, and on which terms."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from .errors import Invalid

Isolation = Literal["read committed", "repeatable read", "serializable"]
ISOLATIONS = ("read committed", "repeatable read", "serializable")

TENANT_BYTES_MAX = 255
SCOPE_BYTES_MAX = 1024
KEY_BYTES_MAX = 255


@dataclass(frozen=True)
class Operation:
    """Tenant, scope and key: what happens once.

    The tenant is who the caller has proved to be, never what it says of itself. The scope is
    usually the method, a space and the path.
    """

    tenant: str
    scope: str
    key: str

    def __post_init__(self) -> None:
        check_name("tenant", self.tenant, TENANT_BYTES_MAX)
        check_name("scope", self.scope, SCOPE_BYTES_MAX)
        check_name("key", self.key, KEY_BYTES_MAX)


@dataclass(frozen=True)
class Request:
    """What makes two requests the same; what is left out does not tell them apart."""

    body: bytes | str = b""
    method: str = ""
    path: str = ""
    query: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.body, (bytes, str)):
            raise Invalid(f"a request is bytes or text, not {type(self.body).__name__}")
        for part in (self.method, self.path, self.query):
            if not isinstance(part, str):
                raise Invalid(f"method, path and query of a request are texts, not {part!r}")


@dataclass(frozen=True)
class Options:
    """The terms of an operation."""

    retention: timedelta = timedelta(days=1)
    """How long its answer is kept."""
    tombstone: timedelta = timedelta()
    """How long after that a late retry hears that it is gone."""
    wait: timedelta = timedelta(seconds=2)
    """How long a duplicate waits for the first one."""
    isolation: Isolation | None = None
    """The level of its transaction; None for what the database says."""

    def __post_init__(self) -> None:
        for name in ("retention", "tombstone", "wait"):
            if not isinstance(getattr(self, name), timedelta):
                raise Invalid(f"the {name} is a timedelta, not {getattr(self, name)!r}")
        if self.isolation is not None and self.isolation not in ISOLATIONS:
            raise Invalid(
                f"the isolation is one of {', '.join(ISOLATIONS)}, not {self.isolation!r}"
            )


def check_name(what: str, name: object, bytes_max: int) -> None:
    """Refuses what cannot name a part of an operation."""
    if not isinstance(name, str):
        raise Invalid(f"the {what} is a text, not {type(name).__name__}")
    if not name.strip(" "):
        raise Invalid(f"the {what} is empty")
    if len(name) > bytes_max:
        raise Invalid(f"the {what} has {len(name)} characters, and {bytes_max} at most are allowed")
    if not (name.isascii() and name.isprintable()):
        raise Invalid(f"the {what} holds more than visible ASCII characters and spaces")
