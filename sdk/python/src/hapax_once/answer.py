"""What work answers with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from .errors import Invalid

Headers = Mapping[str, "str | Sequence[str]"]
Ending = Literal["finish", "fail", "rollback"]

PASSING = frozenset({401, 403, 408, 413, 425, 429})
"""Refusals that another attempt may not meet: nothing is stored, and the key is free."""


@dataclass(frozen=True)
class Answer:
    """A status, headers and a body, as they are stored and replayed."""

    status: int = 200
    headers: Headers = field(default_factory=dict)
    body: bytes = b""
    replayed: bool = False
    """Whether an earlier call gave it."""
    expires_at: datetime | None = None
    """Until when it is kept; None if it is not stored."""

    def __post_init__(self) -> None:
        if type(self.status) is not int or not 100 <= self.status <= 599:
            raise Invalid(f"the status of an answer is 100 to 599, not {self.status!r}")
        if not isinstance(self.body, bytes):
            raise Invalid(f"the body of an answer is bytes, not {type(self.body).__name__}")
        for name, value in self.headers.items():
            values = value if isinstance(value, (list, tuple)) else [value]
            if not isinstance(name, str) or not all(isinstance(text, str) for text in values):
                raise Invalid(f"a header is a text or a list of texts, which {name!r} is not")

    @classmethod
    def json(cls, value: Any, status: int = 200, headers: Headers | None = None) -> Answer:
        """A JSON value as an answer."""
        body = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        return cls(status, {"content-type": "application/json", **(headers or {})}, body)

    @classmethod
    def text(cls, text: str, status: int = 200, headers: Headers | None = None) -> Answer:
        """A text as an answer."""
        return cls(
            status, {"content-type": "text/plain; charset=utf-8", **(headers or {})}, text.encode()
        )

    def given(self, expires_at: datetime | None = None) -> Answer:
        """The same answer, given for the first time and kept so long; it was checked already."""
        given = object.__new__(Answer)
        given.__dict__.update(self.__dict__, replayed=False, expires_at=expires_at)
        return given

    @property
    def ending(self) -> Ending:
        """How the transaction of the work ends that answers so."""
        if self.status < 400:
            return "finish"
        return "rollback" if self.status >= 500 or self.status in PASSING else "fail"


class Refused(Exception):
    """Raised by work that failed for good: its writes are taken back, every retry hears this."""

    def __init__(self, answer: Answer) -> None:
        if not isinstance(answer, Answer) or answer.status < 400:
            raise Invalid(f"a refusal is an Answer of 400 or more, not {answer!r}")
        super().__init__(f"refused with {answer.status}")
        self.answer = answer

    @classmethod
    def json(cls, value: Any, status: int = 400, headers: Headers | None = None) -> Refused:
        """A refusal with a JSON value."""
        return cls(Answer.json(value, status, headers))
