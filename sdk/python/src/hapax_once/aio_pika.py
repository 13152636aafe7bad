"""RabbitMQ, by aio-pika."""

from __future__ import annotations

import asyncio
from typing import Any

from aio_pika.abc import AbstractIncomingMessage

from .consumer import AsyncConsumer, Message, Outcome


async def deliver(
    consumer: AsyncConsumer[Any], received: AbstractIncomingMessage, message_id: str | None = None
) -> Outcome:
    """Hands a message to the consumer, then acknowledges it or puts it back.

    RabbitMQ puts a message back at once or never: one for later is held here until its time has
    come.
    """
    message = Message.received(
        received.body,
        {name: str(value) for name, value in received.headers.items()},
        named=message_id,
        broker_id=received.message_id,
        source=received.routing_key or "",
    )
    outcome = await consumer.deliver(message)
    if outcome.is_done:
        await received.ack()
    else:
        await asyncio.sleep(outcome.pause)
        await received.nack(requeue=True)
    return outcome
