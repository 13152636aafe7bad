"""Consumers: a handler that acts on each message once, whatever the broker delivers again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Generic, TypeVar

from . import deliveries
from .database import MESSAGE_RETENTION, MESSAGE_WAIT, MESSAGES, AsyncDatabase, Database
from .deliveries import Failed, Message, Outcome, Terms
from .driver import run

__all__ = ["AsyncConsumer", "Consumer", "Failed", "Message", "Outcome"]

C = TypeVar("C")

ATTEMPTS_MAX = 10


class Consumer(Generic[C]):
    """Hands messages to `handler(connection, message)`, in a transaction that remembers them.

    The handler raises `Failed` for what can never be acted on. Anything else that it raises is
    tried again, `attempts_max` times in all, and then is a dead letter.
    """

    def __init__(
        self,
        name: str,
        database: Database[C],
        handler: Callable[[C, Message], object],
        *,
        attempts_max: int = ATTEMPTS_MAX,
        tenant: str = MESSAGES,
        retention: timedelta = MESSAGE_RETENTION,
        wait: timedelta = MESSAGE_WAIT,
    ) -> None:
        self.database = database
        self.handler = handler
        self.terms = Terms(name, attempts_max, tenant, retention, wait)

    def deliver(self, message: Message) -> Outcome:
        """Acts on a message unless that was done before, and says what its broker is to hear."""
        return run(deliveries.deliver(self.database.driver, self.terms, self.handler, message))


class AsyncConsumer(Generic[C]):
    """The same for asyncio."""

    def __init__(
        self,
        name: str,
        database: AsyncDatabase[C],
        handler: Callable[[C, Message], Awaitable[object]],
        *,
        attempts_max: int = ATTEMPTS_MAX,
        tenant: str = MESSAGES,
        retention: timedelta = MESSAGE_RETENTION,
        wait: timedelta = MESSAGE_WAIT,
    ) -> None:
        self.database = database
        self.handler = handler
        self.terms = Terms(name, attempts_max, tenant, retention, wait)

    async def deliver(self, message: Message) -> Outcome:
        """Acts on a message unless that was done before, and says what its broker is to hear."""
        return await deliveries.deliver(self.database.driver, self.terms, self.handler, message)
