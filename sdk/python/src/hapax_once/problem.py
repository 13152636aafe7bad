"""Refusals over HTTP, as problem documents of RFC 9457."""

from __future__ import annotations

import json
from collections.abc import Sequence

from .errors import (
    Busy,
    Conflict,
    Damaged,
    Gone,
    HapaxError,
    InDoubt,
    Mismatch,
    Newer,
    NotRetained,
    OutcomeUnknown,
    Unavailable,
)

PAGES = "/.well-known/idempotency/errors/"

CODES: dict[str, tuple[int, str]] = {
    "key-missing": (400, "The request has no idempotency key"),
    "key-malformed": (400, "The idempotency key is malformed"),
    "key-empty": (400, "The idempotency key is empty"),
    "key-too-long": (400, "The idempotency key is too long"),
    "key-repeated": (400, "The idempotency key was sent more than once"),
    "key-reused": (422, "The idempotency key was used for another request"),
    "key-in-flight": (409, "A request with this idempotency key is in progress"),
    "key-gone": (410, "The idempotency key is past its retention"),
    "credential-missing": (401, "The request has no credential"),
    "scope-unusable": (400, "The path cannot name an operation"),
    "body-too-large": (413, "The request is too large"),
    "outcome-in-doubt": (409, "Nobody knows whether the operation happened"),
    "outcome-not-recorded": (503, "The outcome could not be recorded"),
    "response-not-retained": (409, "The operation was done and its response was not kept"),
    "stored-response-corrupt": (500, "The stored response is damaged"),
    "stored-by-newer-version": (503, "The stored record was written by a newer version"),
    "store-unavailable": (503, "The store cannot be asked"),
    "transaction-rolled-back": (503, "The operation was rolled back"),
}


class Problem(Exception):
    """A request that is refused, and what its client hears."""

    def __init__(
        self,
        code: str,
        detail: str,
        *,
        retry_after: int | None = None,
        differs: Sequence[str] | None = None,
    ) -> None:
        super().__init__(f"{code}: {detail}")
        self.code = code
        self.detail = detail
        self.retry_after = retry_after
        self.differs = differs
        self.status, self.title = CODES[code]

    @property
    def headers(self) -> list[tuple[str, str]]:
        headers = [
            ("content-type", "application/problem+json"),
            ("content-language", "en"),
            ("cache-control", "no-store"),
            ("hapax-refusal", self.code),
            ("link", f'<{PAGES}{self.code}>; rel="describedby"'),
        ]
        if self.retry_after is not None:
            headers.append(("retry-after", str(self.retry_after)))
        return headers

    @property
    def body(self) -> bytes:
        document: dict[str, object] = {
            "type": PAGES + self.code,
            "title": self.title,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        }
        if self.differs is not None:
            document["differs"] = list(self.differs)
        return json.dumps(document).encode() + b"\n"


def problem_of(error: HapaxError) -> Problem | None:
    """What a client hears of an error; None for what only the service can mend."""
    again = "Nothing was run. Ask again."
    match error:
        case Busy():
            detail = "The first request with this key is still being worked on. Ask again later."
            return Problem("key-in-flight", detail, retry_after=error.retry_after)
        case Mismatch():
            return Problem("key-reused", "Use a new key for a new request.", differs=error.differs)
        case InDoubt():
            detail = (
                "An attempt ended without an answer. "
                "It is not repeated until somebody has found out whether it happened."
            )
            return Problem("outcome-in-doubt", detail)
        case Gone():
            return Problem("key-gone", "The key was used, and its answer is no longer kept.")
        case NotRetained():
            detail = f"It was answered with {error.status}; the body was not kept."
            return Problem("response-not-retained", detail)
        case Conflict():
            detail = "Nothing of it was kept. Ask again with the same key."
            return Problem("transaction-rolled-back", detail, retry_after=1)
        case Damaged():
            return Problem("stored-response-corrupt", "It was not served, and nothing was run.")
        case Newer():
            return Problem("stored-by-newer-version", again, retry_after=5)
        case Unavailable():
            return Problem("store-unavailable", again, retry_after=1)
        case OutcomeUnknown():
            detail = "The request may have been carried out. Ask again with the same key."
            return Problem("outcome-not-recorded", detail, retry_after=1)
        case _:
            return None
