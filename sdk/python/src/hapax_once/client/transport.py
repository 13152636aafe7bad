"""Transports that retry, for any client of httpx: `httpx.Client(transport=RetryTransport())`."""

from __future__ import annotations

from dataclasses import dataclass

import httpx

from ..driver import run
from ..key import HEADER, quoted_key, read_key
from ..problem import Problem
from .caller import ATTEMPT_SECONDS, ATTEMPTS_MAX, DEADLINE_SECONDS, new_key, no_note
from .pursuit import READING_METHODS, Outgoing, Patience, Pursued, Wire, pursue
from .reading import History, Word
from .wire import AsyncHttpxWire, HttpxWire

PATIENCE = Patience(DEADLINE_SECONDS, ATTEMPT_SECONDS, ATTEMPTS_MAX)


@dataclass(frozen=True)
class Tried:
    """What came of a request, as `response.extensions["hapax"]`."""

    word: Word
    key: str | None
    attempts: int
    replayed: bool


class RetryTransport(httpx.BaseTransport):
    """Sends a request under one key until it is known what came of it; without a journal."""

    def __init__(
        self, transport: httpx.BaseTransport | None = None, patience: Patience = PATIENCE
    ) -> None:
        self.transport = transport or httpx.HTTPTransport()
        self.patience = patience

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        outgoing = outgoing_of(request, request.read())
        wire = HttpxWire(self.transport.handle_request)
        return response_of(run(pursued_by(wire, outgoing, self.patience)), outgoing, request)

    def close(self) -> None:
        self.transport.close()


class AsyncRetryTransport(httpx.AsyncBaseTransport):
    """The same for asyncio."""

    def __init__(
        self, transport: httpx.AsyncBaseTransport | None = None, patience: Patience = PATIENCE
    ) -> None:
        self.transport = transport or httpx.AsyncHTTPTransport()
        self.patience = patience

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        outgoing = outgoing_of(request, await request.aread())
        wire = AsyncHttpxWire(self.transport.handle_async_request)
        return response_of(await pursued_by(wire, outgoing, self.patience), outgoing, request)

    async def aclose(self) -> None:
        await self.transport.aclose()


def outgoing_of(request: httpx.Request, body: bytes) -> Outgoing:
    key = None
    if HEADER in request.headers:
        try:
            key = read_key(request.headers.get_list(HEADER))
        except Problem as problem:
            raise httpx.LocalProtocolError(str(problem), request=request) from problem
    elif request.method not in READING_METHODS:
        key = new_key()
    headers = [
        (name, value) for name, value in request.headers.multi_items() if name != HEADER.lower()
    ]
    if key is not None:
        headers.append((HEADER, quoted_key(key)))
    return Outgoing(request.method, str(request.url), tuple(headers), body, key)


async def pursued_by(wire: Wire, outgoing: Outgoing, patience: Patience) -> Pursued:
    return await pursue(wire, outgoing, patience, History(reads_only=outgoing.reads_only), no_note)


def response_of(pursued: Pursued, outgoing: Outgoing, request: httpx.Request) -> httpx.Response:
    """The last answer; without one, what httpx would have raised."""
    received = pursued.received
    if received is None:
        cause = pursued.error and pursued.error.__cause__
        kind = type(cause) if isinstance(cause, httpx.RequestError) else httpx.ReadTimeout
        text = f"{pursued.error} ({pursued.word} after {pursued.attempts} attempts)"
        raise kind(text, request=request) from pursued.error
    tried = Tried(pursued.word, outgoing.key, pursued.attempts, pursued.replayed)
    return httpx.Response(
        received.status,
        headers=list(received.headers),
        stream=httpx.ByteStream(received.body or b""),
        extensions={"hapax": tried},
        request=request,
    )
