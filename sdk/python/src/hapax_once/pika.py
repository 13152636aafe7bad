"""RabbitMQ, by pika's blocking connection."""

from __future__ import annotations

from functools import partial
from typing import Any

from pika.adapters.blocking_connection import BlockingChannel
from pika.spec import Basic, BasicProperties

from .consumer import Consumer, Message, Outcome


def deliver(
    consumer: Consumer[Any],
    channel: BlockingChannel,
    method: Basic.Deliver,
    properties: BasicProperties,
    body: bytes,
    message_id: str | None = None,
) -> Outcome:
    """Hands a message to the consumer, then acknowledges it or puts it back.

    As a callback it is `partial(deliver, consumer)`. RabbitMQ puts a message back at once or never:
    one for later is held here until its time has come.
    """
    message = Message.received(
        body,
        {name: str(value) for name, value in (properties.headers or {}).items()},
        named=message_id,
        broker_id=properties.message_id,
        source=method.routing_key or "",
    )
    tag = method.delivery_tag or 0
    outcome = consumer.deliver(message)
    if outcome.is_done:
        channel.basic_ack(tag)
    else:
        put_back = partial(channel.basic_nack, tag, requeue=True)
        channel.connection.call_later(outcome.pause, put_back)
    return outcome
