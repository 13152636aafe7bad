"""What an answer says about an attempt, and what all attempts of an operation come to."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import Enum, auto
from typing import Literal

from ..key import quoted_key

Word = Literal["done", "refused", "unknown", "gave up"]
Verdict = Literal["success", "retry", "wait", "never", "unknown"]

PROBLEM = "application/problem+json"
PROBLEM_BYTES_MAX = 64 << 10
NO_ANSWER_YET = 202


class Result(Enum):
    """What came of an attempt."""

    NOT_SENT = auto()
    UNANSWERED = auto()
    NOTHING_RAN = auto()
    IN_FLIGHT = auto()
    KEY_REUSED = auto()
    IN_DOUBT = auto()
    NOT_RETAINED = auto()
    GONE = auto()
    SUCCESS = auto()
    NOT_NOW = auto()
    REFUSED = auto()
    FAILED = auto()


BY_CODE = {
    "key-in-flight": Result.IN_FLIGHT,
    "key-reused": Result.KEY_REUSED,
    "outcome-in-doubt": Result.IN_DOUBT,
    "response-not-retained": Result.NOT_RETAINED,
    "key-gone": Result.GONE,
    "first-sent-too-old": Result.GONE,
    "body-incomplete": Result.NOTHING_RAN,
    "caller-unverifiable": Result.NOTHING_RAN,
    "deadline-passed": Result.NOTHING_RAN,
    "execution-not-started": Result.NOTHING_RAN,
    "overloaded": Result.NOTHING_RAN,
    "shutting-down": Result.NOTHING_RAN,
    "store-quarantined": Result.NOTHING_RAN,
    "store-unavailable": Result.NOTHING_RAN,
    "stored-by-newer-version": Result.NOTHING_RAN,
    "transaction-rolled-back": Result.NOTHING_RAN,
}

VERDICTS: dict[Result, Verdict] = {
    Result.SUCCESS: "success",
    Result.NOT_SENT: "retry",
    Result.NOTHING_RAN: "retry",
    Result.UNANSWERED: "retry",
    Result.NOT_NOW: "retry",
    Result.FAILED: "retry",
    Result.IN_FLIGHT: "wait",
    Result.KEY_REUSED: "never",
    Result.NOT_RETAINED: "never",
    Result.GONE: "never",
    Result.REFUSED: "never",
    Result.IN_DOUBT: "unknown",
}

DOUBTFUL = {Result.UNANSWERED, Result.IN_FLIGHT, Result.IN_DOUBT, Result.FAILED}


@dataclass(frozen=True)
class Reading:
    """What an attempt came to, as far as its answer says."""

    result: Result
    status: int = 0
    told_seconds: float | None = None
    """What the server asks to be waited for."""
    replayed: bool = False
    """Whether it is the kept answer of an earlier attempt."""
    knows_key: bool = False
    """Whether whoever answered had looked at the key."""
    should_retry: bool | None = None
    """What `Stripe-Should-Retry` says."""
    cut: int | None = None
    """The status of a success whose body broke off."""

    @property
    def verdict(self) -> Verdict:
        """What to do about it, as the request may be sent again."""
        verdict = VERDICTS[self.result]
        if verdict in ("retry", "wait") and self.should_retry is False:
            return "never"
        if verdict == "retry" and self.replayed:
            return "never"  # What is kept under the key will be said again.
        if verdict == "never" and self.should_retry and not self.replayed:
            return "retry"
        return verdict


def read(status: int, headers: Mapping[str, str], body: bytes, key: str | None) -> Reading:
    """Reads an answer; names of headers are in small letters."""
    replayed = truth(headers.get("idempotent-replayed")) is True
    repeated = headers.get("idempotency-key")
    echoed = key is not None and repeated in (key, quoted_key(key))
    knows_key = replayed or echoed or "idempotency-expires" in headers
    result = of_status(status)
    if 200 <= status <= 299:
        return Reading(result, status, replayed=replayed, knows_key=knows_key)
    told = retry_after(headers)
    should_retry = truth(headers.get("stripe-should-retry"))
    result = BY_CODE.get(code(headers, body), result)
    # Stripe, and others like it, have no code for a key in flight.
    is_asked_back = told is not None or should_retry is True
    if status == 409 and result is Result.REFUSED and key is not None and is_asked_back:
        result = Result.IN_FLIGHT
    return Reading(result, status, told, replayed, knows_key, should_retry)


def of_status(status: int) -> Result:
    """What a bare status says. A redirect is a refusal: the key is not sent to somebody else."""
    if 200 <= status <= 299 or status in (303, 304):
        return Result.SUCCESS
    if status in (408, 425, 429):
        return Result.NOT_NOW
    if 300 <= status <= 499 or status in (501, 505):
        return Result.REFUSED
    return Result.FAILED


def cut_off(status: int) -> Reading:
    """An answer whose body did not come."""
    is_last_word = of_status(status) is Result.SUCCESS and status != NO_ANSWER_YET
    return Reading(Result.UNANSWERED, cut=status if is_last_word else None)


def code(headers: Mapping[str, str], body: bytes) -> str:
    """The code of one of Hapax's own refusals; a page of anybody's that is called alike is none."""
    if not headers.get("content-type", "").lower().startswith(PROBLEM):
        return ""
    if "hapax-refusal" in headers:
        return headers["hapax-refusal"]
    if len(body) > PROBLEM_BYTES_MAX:
        return ""
    try:
        document = json.loads(body)
        named = str(document["type"]).rpartition("/")[2]
        return named if document["code"] == named else ""
    except (ValueError, KeyError, TypeError):
        return ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """What `Retry-After` says, in seconds from now; a date counts by the clock of its sender."""
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        return float(value)
    until, said = instant(value), instant(headers.get("date", ""))
    if until is None:
        return None
    return max(0.0, until - (time.time() if said is None else said))


def instant(value: str) -> float | None:
    try:
        return parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError):
        return None


def truth(value: str | None) -> bool | None:
    return {"true": True, "false": False}.get((value or "").lower())


Heard = Literal["yes", "no", "perhaps", "nothing"]


class History:
    """All attempts of one operation, which come to one of four words.

    A success ends a doubt. A refusal ends it only if whoever refuses has looked at the key.
    """

    def __init__(self, *, reads_only: bool = False, doubt: bool = False) -> None:
        self.reads_only = reads_only
        self.doubt = doubt
        self.cut: int | None = None
        self.heard: Heard = "nothing"

    def note(self, reading: Reading) -> None:
        if self.heard == "yes":
            return
        self.heard = self.hear(reading)
        if self.heard == "no":
            self.doubt = False
        if self.heard == "perhaps" and not self.reads_only:
            self.doubt = True
        if self.cut is None:
            self.cut = reading.cut

    def hear(self, reading: Reading) -> Heard:
        result = reading.result
        if result is Result.SUCCESS:
            # A server that contradicts half an answer of its own is not believed.
            return "yes" if self.cut in (None, reading.status) else "perhaps"
        if result is Result.NOT_RETAINED or result in DOUBTFUL:
            return "perhaps"
        if VERDICTS[result] == "retry":
            return "nothing"
        knows = reading.knows_key and result is not Result.GONE
        is_settled = not self.doubt or knows or result is Result.KEY_REUSED
        return "no" if is_settled and self.cut is None else "perhaps"

    @property
    def word(self) -> Word:
        if self.heard in ("yes", "no"):
            return "done" if self.heard == "yes" else "refused"
        return "unknown" if self.doubt else "gave up"
