"""A client for HTTP that sends a request until it is known what came of it.

`Client` and `AsyncClient` have a journal, `RetryTransport` and `AsyncRetryTransport` go into any
client of httpx.
"""

from .caller import (
    CallError,
    CallGaveUp,
    CallRefused,
    CallUnknown,
    CredentialsMissing,
    Reply,
)
from .clients import AsyncClient, Client
from .journal import Held, NameReused
from .transport import AsyncRetryTransport, RetryTransport, Tried

__all__ = [
    "AsyncClient",
    "AsyncRetryTransport",
    "CallError",
    "CallGaveUp",
    "CallRefused",
    "CallUnknown",
    "Client",
    "CredentialsMissing",
    "Held",
    "NameReused",
    "Reply",
    "RetryTransport",
    "Tried",
]
