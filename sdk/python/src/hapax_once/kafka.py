"""Kafka, by confluent-kafka. The consumer of the group has `enable.auto.commit` off."""

from __future__ import annotations

import time
from typing import Any

from confluent_kafka import Consumer as Group
from confluent_kafka import Message as Received
from confluent_kafka import TopicPartition

from .consumer import Consumer, Message, Outcome

PAUSE_SECONDS_MAX = 60.0
"""Well below what Kafka waits for the next poll."""


def deliver(
    consumer: Consumer[Any], group: Group, received: Received, message_id: str | None = None
) -> Outcome:
    """Hands a message to the consumer, then commits its offset or goes back to it.

    Messages of a partition stay in order: one that has to come again does so before the next.
    """
    topic, partition, offset = received.topic(), received.partition(), received.offset()
    raw = received.headers() or []
    pairs = raw.items() if isinstance(raw, dict) else raw
    headers = {name: text(value) for name, value in pairs}
    key = received.key()
    message = Message.received(
        received.value() or b"",
        headers,
        named=message_id,
        broker_id=f"{topic}/{partition}/{offset}",
        key=None if key is None else text(key),
        source=topic or "",
    )
    outcome = consumer.deliver(message)
    if outcome.is_done:
        group.commit(message=received, asynchronous=False)
    else:
        time.sleep(min(outcome.pause, PAUSE_SECONDS_MAX))
        group.seek(TopicPartition(topic or "", partition or 0, offset or 0))
    return outcome


def text(value: bytes | str | None) -> str:
    return value if isinstance(value, str) else (value or b"").decode(errors="replace")
