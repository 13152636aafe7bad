"""One effect per `Idempotency-Key`: a FastAPI request in a transaction with hapax.begin."""

import asyncio
import json
import random
import re
from datetime import timezone
from email.utils import format_datetime

from fastapi import Request, Response
from psycopg import OperationalError
from psycopg.errors import DeadlockDetected, SerializationFailure
from psycopg.rows import namedtuple_row
from psycopg.types.json import Jsonb

ATTEMPTS_MAX = 6
FIRST_PAUSE_SECONDS_MAX = 0.02

BEGIN = """SELECT * FROM hapax.begin(%s, %s, %s,
           request => %s, method => %s, path => %s, query => %s)"""
FINISH = "SELECT hapax.finish(%s, %s, %s, %s, %s)"
FAIL = "SELECT hapax.fail(%s, %s, %s, %s, %s)"


class Answer:
    """A status and a JSON value, as the bytes that are stored and sent."""

    def __init__(self, status: int, value):
        self.status = status
        self.headers = {"content-type": "application/json"}
        self.body = json.dumps(value).encode() + b"\n"


class Refused(Exception):
    """The work failed for good: its writes are taken back, and every retry hears this."""

    def __init__(self, status: int, value):
        super().__init__(status, value)
        self.answer = Answer(status, value)


async def once(pool, request: Request, *, tenant: str, work) -> Response:
    """Runs `work(connection, body)` once for the request's key, and answers every retry alike."""
    key = read_key(request.headers.getlist("idempotency-key"))
    if key is None:
        return problem(400, "Send one Idempotency-Key of 1 to 255 visible characters")
    path, query = (request.scope[part].decode("latin-1") for part in ("raw_path", "query_string"))
    body = await request.body()
    scope = f"{request.method} {path}"
    asked = (tenant, scope, key, body, request.method, path, query)
    for attempt in range(ATTEMPTS_MAX):
        try:
            async with pool.connection() as db, db.transaction():
                return await answer(db, asked, lambda: work(db, body))
        except (SerializationFailure, DeadlockDetected):
            pause = random.uniform(0, FIRST_PAUSE_SECONDS_MAX * 2**attempt)
            await asyncio.sleep(pause)
        except OperationalError:
            # Perhaps it was committed and nobody heard: whoever asks again is told.
            break
    return problem(503, "The database cannot be asked now", retry_after=1)


async def answer(db, asked, work) -> Response:
    cursor = db.cursor(row_factory=namedtuple_row)
    begun = await (await cursor.execute(BEGIN, asked)).fetchone()
    match begun.decision:
        case "execute":
            try:
                async with db.transaction():  # a savepoint, because this one is the inner
                    said, end = await work(), FINISH
            except Refused as refused:
                said, end = refused.answer, FAIL
            outcome = (said.status, Jsonb(said.headers), said.body)
            await db.execute(end, (begun.operation, begun.fence, *outcome))
            return respond(said.status, said.headers, said.body, begun.expires_at)
        case "replay" if begun.body is None:
            return problem(409, "It was done, and its answer was too large to keep")
        case "replay":
            replayed = {**begun.headers, "idempotent-replayed": "true"}
            return respond(begun.status, replayed, begun.body, begun.expires_at)
        case "busy":
            title = "A request with this key is in progress"
            return problem(409, title, retry_after=begun.retry_after)
        case "mismatch":
            return problem(422, "The key was used for another request", differs=begun.differs)
        case "in_doubt":
            return problem(409, "Nobody knows whether this happened; it has to be looked into")
        case "gone":
            return problem(410, "It was done, and its answer is no longer kept")
        case unknown:
            raise RuntimeError(f"hapax.begin decided {unknown}, which this code does not know")


def read_key(lines: list[str]) -> str | None:
    """The key in its quoted or its bare form, which are the same key."""
    raw = lines[0].strip() if len(lines) == 1 else ""
    if quoted := re.fullmatch(r'"((?:[ !#-\[\]-~]|\\["\\])*)"', raw):
        key = re.sub(r"\\(.)", r"\1", quoted[1])
    else:
        key = raw if re.fullmatch(r'(?![:?@(])[^",;\\]+', raw) else ""
    return key if re.fullmatch(r"(?=.*[!-~])[ -~]{1,255}", key) else None


def respond(status, headers, body, expires_at) -> Response:
    response = Response(body, status)
    for name, values in headers.items():
        for value in values if isinstance(values, list) else [values]:
            response.headers.append(name, value)
    expires_at = format_datetime(expires_at.astimezone(timezone.utc), usegmt=True)
    response.headers["idempotency-expires"] = expires_at
    return response


def problem(status: int, title: str, retry_after: int | None = None, **more) -> Response:
    body = json.dumps({"title": title, "status": status, **more}).encode() + b"\n"
    response = Response(body, status, media_type="application/problem+json")
    if retry_after is not None:
        response.headers["retry-after"] = str(retry_after)
    return response
