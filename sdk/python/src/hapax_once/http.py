"""What all frameworks share: which operation a request is, and how an answer is sent."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from email.utils import format_datetime

from .answer import Answer
from .canonical_json import NotCanonical, canonical_json
from .errors import HapaxError, Invalid
from .key import HEADER, read_key
from .operation import SCOPE_BYTES_MAX, Operation, Options, Request, check_name
from .problem import Problem, problem_of

TRANSACTION = "hapax.transaction"
"""Where a protected request has its transaction: in the ASGI scope, or the WSGI environ."""

SAFE_METHODS = frozenset(
    {"GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "REPORT", "SEARCH"}
)
NOT_STORED = frozenset({"connection", "keep-alive", "transfer-encoding", "date", "set-cookie"})
BODY_BYTES_MAX = 1 << 20
PATH_SAFE = "/:@!$&'()*+,;=~-._"
"""What is not escaped in a path, where a server tells only what it means."""

HeaderList = list[tuple[str, str]]


@dataclass(frozen=True)
class Arrival:
    """A request, as it arrived."""

    method: str
    path: str
    query: str
    headers: HeaderList
    body: bytes

    def lines(self, name: str) -> list[str]:
        return [value for known, value in self.headers if known.lower() == name.lower()]


@dataclass(frozen=True)
class Protection:
    """How the routes of a service are protected."""

    ignored: Collection[str] = ()
    """JSON pointers to members of the body that do not tell requests apart."""
    body_bytes_max: int = BODY_BYTES_MAX
    """The largest body that is taken; it is read into memory to be compared."""
    options: Options | None = None
    """The terms of operations; None for those of the database."""

    def check_size(self, size: int) -> None:
        """Refuses a body that is too large."""
        if size > self.body_bytes_max:
            raise Problem("body-too-large", f"The limit is {self.body_bytes_max} bytes.")

    def operation(self, arrival: Arrival, tenant: str | None) -> tuple[Operation, Request]:
        """Which operation a request is, and what it asks."""
        key = read_key(arrival.lines(HEADER))
        if tenant is None:
            raise Problem("credential-missing", "Send the credential the key belongs to.")
        scope = f"{arrival.method} {arrival.path}"
        try:
            check_name("scope", scope, SCOPE_BYTES_MAX)
        except Invalid as invalid:
            detail = "The path is too long, or not visible ASCII."
            raise Problem("scope-unusable", detail) from invalid
        request = Request(self.compared(arrival), arrival.method, arrival.path, arrival.query)
        return Operation(tenant, scope, key), request

    def compared(self, arrival: Arrival) -> bytes:
        """The body as it is compared: JSON in its one spelling, anything else byte by byte."""
        if not is_json(arrival.lines("content-type")) or arrival.lines("content-encoding"):
            return arrival.body
        try:
            return canonical_json(arrival.body, self.ignored)
        except NotCanonical:
            return arrival.body


def is_json(lines: list[str]) -> bool:
    if len(lines) != 1:
        return False
    kind = lines[0].partition(";")[0].strip().lower()
    return kind in {"application/json", "text/json"} or kind.endswith("+json")


def stored(status: int, headers: Iterable[tuple[str, str]], body: bytes) -> Answer:
    """An answer without what belongs to one connection, one moment or one person."""
    kept: dict[str, list[str]] = {}
    for name, value in headers:
        if name.lower() not in NOT_STORED:
            kept.setdefault(name.lower(), []).append(value)
    single = {name: values[0] if len(values) == 1 else values for name, values in kept.items()}
    return Answer(status, single, body)


def sent_headers(answer: Answer) -> HeaderList:
    """The headers of an answer that is replayed."""
    headers: HeaderList = []
    for name, values in answer.headers.items():
        headers.extend((name, value) for value in ([values] if isinstance(values, str) else values))
    return headers + marks(answer)


def marks(answer: Answer) -> HeaderList:
    """What Hapax says about an answer."""
    said: HeaderList = []
    if answer.replayed:
        said.append(("idempotent-replayed", "true"))
    if answer.expires_at is not None:
        said.append(("idempotency-expires", format_datetime(answer.expires_at, usegmt=True)))
    return said


def refusal(error: HapaxError | Problem) -> Problem:
    """What a client hears of an error; raises what only the service can mend."""
    problem = error if isinstance(error, Problem) else problem_of(error)
    if problem is None:
        raise error
    return problem
