"""Amazon SQS, by boto3. Messages are received with `MessageAttributeNames=["All"]`."""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from typing import Any

from .consumer import Consumer, Message, Outcome

VISIBILITY_SECONDS_MAX = 12 * 60 * 60


def deliver(
    consumer: Consumer[Any],
    sqs: Any,
    queue_url: str,
    received: Mapping[str, Any],
    message_id: str | None = None,
) -> Outcome:
    """Hands a message to the consumer, then deletes it or hides it for a while."""
    attributes = received.get("MessageAttributes", {})
    headers = {name: value.get("StringValue", "") for name, value in attributes.items()}
    message = Message.received(
        payload(received["Body"], headers.pop("hapax-encoding", "")),
        headers,
        named=message_id,
        broker_id=received["MessageId"],
        source=queue_url.rpartition("/")[2],
    )
    outcome = consumer.deliver(message)
    receipt = {"QueueUrl": queue_url, "ReceiptHandle": received["ReceiptHandle"]}
    if outcome.is_done:
        sqs.delete_message(**receipt)
    else:
        hidden = min(math.ceil(outcome.pause), VISIBILITY_SECONDS_MAX)
        sqs.change_message_visibility(**receipt, VisibilityTimeout=hidden)
    return outcome


def payload(body: str, encoding: str) -> bytes:
    """The payload as it was before the relay of Hapax made it fit for SQS."""
    if encoding == "empty":
        return b""
    return base64.b64decode(body) if encoding == "base64" else body.encode()
