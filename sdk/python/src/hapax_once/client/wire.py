"""httpx, as the pursuit of a request uses it, and transports for httpx that retry by themselves."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import httpx

from .pursuit import NotSent, Outgoing, Received, Unanswered, Wire

NOT_SENT = (
    httpx.ConnectError,
    httpx.ConnectTimeout,
    httpx.PoolTimeout,
    httpx.ProxyError,
    httpx.UnsupportedProtocol,
)
RESPONSE_BYTES_MAX = 16 << 20


class Reception:
    """The body of an answer, as long as there is time and room for it."""

    def __init__(self, seconds: float) -> None:
        self.ends = time.monotonic() + seconds
        self.status: int | None = None
        self.body = bytearray()

    def take(self, chunk: bytes) -> None:
        self.body += chunk
        if time.monotonic() > self.ends:
            raise Unanswered("the answer took too long", self.status)

    @property
    def is_full(self) -> bool:
        return len(self.body) > RESPONSE_BYTES_MAX

    def whole(self, response: httpx.Response) -> Received:
        body = None if self.is_full else bytes(self.body)
        return Received(response.status_code, tuple(response.headers.multi_items()), body)


class HttpxWire(Wire):
    """Sends by a function of httpx that returns an answer whose body is not read yet."""

    def __init__(self, send: Callable[[httpx.Request], httpx.Response]) -> None:
        self.send_request = send

    async def send(self, outgoing: Outgoing, seconds: float) -> Received:
        reception = Reception(seconds)
        try:
            response = self.send_request(request_of(outgoing, seconds))
            reception.status = response.status_code
            try:
                for chunk in response.iter_raw():
                    reception.take(chunk)
                    if reception.is_full:
                        break
            finally:
                response.close()
        except NOT_SENT as error:
            raise NotSent(str(error) or type(error).__name__) from error
        except httpx.TransportError as error:
            raise Unanswered(str(error) or type(error).__name__, reception.status) from error
        return reception.whole(response)

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)


class AsyncHttpxWire(Wire):
    """The same for asyncio."""

    def __init__(self, send: Callable[[httpx.Request], Awaitable[httpx.Response]]) -> None:
        self.send_request = send

    async def send(self, outgoing: Outgoing, seconds: float) -> Received:
        reception = Reception(seconds)
        try:
            response = await self.send_request(request_of(outgoing, seconds))
            reception.status = response.status_code
            try:
                async for chunk in response.aiter_raw():
                    reception.take(chunk)
                    if reception.is_full:
                        break
            finally:
                await response.aclose()
        except NOT_SENT as error:
            raise NotSent(str(error) or type(error).__name__) from error
        except httpx.TransportError as error:
            raise Unanswered(str(error) or type(error).__name__, reception.status) from error
        return reception.whole(response)

    async def pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def request_of(outgoing: Outgoing, seconds: float) -> httpx.Request:
    headers = httpx.Headers(list(outgoing.headers))
    # Bodies are kept as they came.
    headers.setdefault("accept-encoding", "identity")
    timeout = httpx.Timeout(seconds).as_dict()
    return httpx.Request(
        outgoing.method,
        outgoing.url,
        headers=headers,
        content=outgoing.body,
        extensions={"timeout": timeout},
    )
