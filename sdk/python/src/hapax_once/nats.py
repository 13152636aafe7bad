"""NATS JetStream, by nats-py."""

from __future__ import annotations

from typing import Any

from nats.aio.msg import Msg

from .consumer import AsyncConsumer, Message, Outcome


async def deliver(
    consumer: AsyncConsumer[Any], received: Msg, message_id: str | None = None
) -> Outcome:
    """Hands a message to the consumer, then acknowledges it or puts it back."""
    at = received.metadata
    message = Message.received(
        received.data,
        received.headers or {},
        named=message_id,
        broker_id=f"{at.stream}:{at.sequence.stream}",
        source=received.subject,
    )
    outcome = await consumer.deliver(message)
    if outcome.is_done:
        await received.ack_sync()
    else:
        await received.nak(delay=outcome.pause)
    return outcome
