"""What Hapax says no with. Every error has a `kind`, the same word in every language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar


class HapaxError(Exception):
    """Anything that Hapax says no with; the message says what to do about it."""

    kind: ClassVar[str] = "error"
    advice: ClassVar[str] = ""

    def __init__(self, detail: str = "") -> None:
        super().__init__(
            f"{self.advice} ({detail})" if self.advice and detail else self.advice or detail
        )


class Busy(HapaxError):
    """Another transaction has the operation, or another delivery the message."""

    kind = "busy"

    def __init__(self, retry_after: int) -> None:
        super().__init__(f"another transaction has it: ask again in {retry_after} s")
        self.retry_after = retry_after


class Mismatch(HapaxError):
    """The key was used for another request."""

    kind = "mismatch"

    def __init__(self, differs: Sequence[str]) -> None:
        parts = ", ".join(differs)
        super().__init__(
            f"the key was used for another request, which differs in {parts}: use a new key"
        )
        self.differs = list(differs)


class InDoubt(HapaxError):
    """Nobody knows whether it happened."""

    kind = "in_doubt"
    advice = (
        "nobody knows whether this happened: find out where its effect would show, "
        "and say so with `hapax keys resolve`"
    )


class Gone(HapaxError):
    """It was done, and its answer is no longer kept."""

    kind = "gone"
    advice = "it was done, and its answer is no longer kept: it is not run again under this key"


class NotRetained(HapaxError):
    """It was done, and its answer was too large to keep."""

    kind = "not_retained"

    def __init__(self, status: int) -> None:
        super().__init__(
            f"it was done and answered with {status}, and the body was too large to keep"
        )
        self.status = status


class UnknownDecision(HapaxError):
    """The database decided something that this package does not know."""

    kind = "unknown_decision"

    def __init__(self, decision: object) -> None:
        super().__init__(f"hapax.begin decided {decision!r}: update hapax-once; nothing was run")


class Conflict(HapaxError):
    """Other transactions were in the way each time."""

    kind = "conflict"
    advice = "other transactions were in the way, nothing was kept: try again later"


class OutcomeUnknown(HapaxError):
    """The connection was lost while it committed, and nobody can be asked."""

    kind = "outcome_unknown"
    advice = "the connection was lost during COMMIT: ask again with the same key to find out"


class Unavailable(HapaxError):
    """The database cannot be asked; nothing happened."""

    kind = "unavailable"
    advice = "the database cannot be asked, nothing happened: try again later"


class SchemaMissing(HapaxError):
    """There is no schema `hapax` in this database."""

    kind = "schema_missing"
    advice = "there is no schema hapax in this database, or only a part of it: run `hapax migrate`"


class SchemaVersion(HapaxError):
    """The schema and this package do not fit together."""

    kind = "schema_version"

    def __init__(self, needed: int, version: int, works_with: int) -> None:
        remedy = "run `hapax migrate`" if version < needed else "update hapax-once"
        super().__init__(
            f"hapax-once needs schema version {needed}; this is {version}, "
            f"which works with {works_with} and later: {remedy}"
        )
        self.version = version
        self.works_with = works_with


class NotInTransaction(HapaxError):
    """A call that belongs into a transaction came on a connection in autocommit."""

    kind = "not_in_a_transaction"
    advice = "this connection is in autocommit: begin a transaction first, nothing was done"


class TransactionAborted(HapaxError):
    """An earlier statement of the caller's transaction failed."""

    kind = "transaction_aborted"
    advice = "an earlier statement of this transaction failed: roll back, and begin again"


class BegunAlready(HapaxError):
    """The same operation twice in one transaction."""

    kind = "begun_already"
    advice = "the operation was begun already in this transaction: begin each one once"


class Nested(HapaxError):
    """`once` inside of the work of `once`."""

    kind = "nested"
    advice = (
        "this is inside of the work of another `once`, which may still be rolled back: "
        "use `within` with the transaction that the work was given; nothing was done"
    )


class StatementPooling(HapaxError):
    """A pooler gives every statement another session."""

    kind = "statement_pooling"
    advice = "the pooler gives every statement another session: use pool_mode = transaction"


class Invalid(HapaxError, ValueError):
    """An argument has the wrong type, is empty or too long."""

    kind = "invalid"


class NotPermitted(HapaxError):
    """The role may not call the functions, or not use this tenant."""

    kind = "not_permitted"
    advice = "the role may not do this: see hapax.grant_functions and hapax.bind_tenants"


class Damaged(HapaxError):
    """The stored record is damaged; it was not served, and nothing was run."""

    kind = "damaged"
    advice = "the stored record is damaged: look at it with `hapax keys show`"


class Newer(HapaxError):
    """The stored record was written by a newer version."""

    kind = "newer"
    advice = (
        "the stored record was written by a newer version: run its `hapax migrate`, then ask again"
    )


class ContentDiffers(HapaxError):
    """A message id was used for other content."""

    kind = "content_differs"
    advice = "the message id was used for other content: put the message aside"


class NoMessageId(HapaxError):
    """A message has no id that it could be known by."""

    kind = "no_message_id"
    advice = "the message has no usable id: name one when you hand it over"


BY_SQLSTATE: dict[str, type[HapaxError]] = {
    "25P01": NotInTransaction,
    "25P02": TransactionAborted,
    "40001": Conflict,
    "40P01": Conflict,
    "42501": NotPermitted,
    "53300": Unavailable,
    "57P01": Unavailable,
    "57P02": Unavailable,
    "57P03": Unavailable,
    "HX001": Invalid,
    "HX002": Invalid,
    "HX003": BegunAlready,
    "HX004": Invalid,
    "HX005": ContentDiffers,
    "HX006": Damaged,
    "HX007": Newer,
}
MISSING = {"3F000", "42883", "42P01"}
BUSY_SECONDS = 1


def of_sqlstate(sqlstate: str | None, text: str) -> HapaxError | None:
    """What an error of the database means here; None if it is none of ours."""
    if sqlstate is None:
        return None
    if "statement pooling" in text:
        return StatementPooling(text)
    if sqlstate == "HX008":
        return Busy(BUSY_SECONDS)
    if sqlstate in MISSING and "hapax" in text:
        return SchemaMissing(text)
    if sqlstate.startswith("08"):
        return Unavailable(text)
    kind = BY_SQLSTATE.get(sqlstate)
    return None if kind is None else kind(text)
