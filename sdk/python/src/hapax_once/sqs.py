"""Amazon SQS, by boto3: `poll` takes messages from a queue until it is told to stop."""

from __future__ import annotations

import base64
import json
import logging
import math
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from .consumer import Consumer, Message, Outcome
from .errors import HapaxError

Received = Mapping[str, Any]

BATCH = 10
POLL_SECONDS = 20
VISIBILITY_SECONDS = 30
VISIBILITY_SECONDS_MAX = 12 * 60 * 60
OUTAGE_PAUSE_SECONDS = 5.0

log = logging.getLogger(__name__)


def poll(
    consumer: Consumer[Any],
    sqs: Any,
    queue_url: str,
    *,
    stop: threading.Event,
    batch: int = BATCH,
    poll_seconds: int = POLL_SECONDS,
    visibility_seconds: int = VISIBILITY_SECONDS,
) -> None:
    """Hands messages to the consumer, one after the other, until `stop` is set.

    A message is deleted when it is done, and hidden for a while when it has to come again; what is
    behind it in its group of a FIFO queue waits for it. What is worked on, or waits for that, stays
    hidden however long it takes.
    """
    queue = Queue(sqs, queue_url, visibility_seconds)
    while not stop.is_set():
        try:
            messages = queue.receive(batch, poll_seconds)
            with queue.hiding(messages) as under_way:
                for group in groups(messages):
                    queue.act(consumer, group, under_way)
        except (BotoCoreError, ClientError):
            # What could not be told to SQS comes again when nobody hides it any longer.
            log.warning("SQS cannot be asked", exc_info=True)
            stop.wait(OUTAGE_PAUSE_SECONDS)


def deliver(
    consumer: Consumer[Any],
    sqs: Any,
    queue_url: str,
    received: Received,
    message_id: str | None = None,
    *,
    visibility_seconds: int = VISIBILITY_SECONDS,
) -> Outcome:
    """Hands one message to the consumer, then deletes it or hides it for a while.

    It was received with `MessageAttributeNames=["All"]`. Groups of a FIFO queue need `poll`.
    """
    queue = Queue(sqs, queue_url, visibility_seconds)
    with queue.hiding([received]):
        outcome = consumer.deliver(queue.read(received, message_id))
    if outcome.is_done:
        queue.delete(received)
    else:
        queue.hide(received, outcome.pause)
    return outcome


class Queue:
    """A queue, and how long its messages are hidden from others."""

    def __init__(self, sqs: Any, url: str, visibility_seconds: int) -> None:
        self.sqs = sqs
        self.url = url
        self.visibility_seconds = visibility_seconds

    def receive(self, batch: int, poll_seconds: int) -> list[Received]:
        received: dict[str, Any] = self.sqs.receive_message(
            QueueUrl=self.url,
            MaxNumberOfMessages=batch,
            WaitTimeSeconds=poll_seconds,
            VisibilityTimeout=self.visibility_seconds,
            MessageAttributeNames=["All"],
            MessageSystemAttributeNames=["All"],
        )
        messages: list[Received] = received.get("Messages", [])
        return messages

    def act(
        self, consumer: Consumer[Any], group: Sequence[Received], under_way: dict[str, Received]
    ) -> None:
        """Acts on messages in their order, up to one that has to come again."""
        for at, received in enumerate(group):
            try:
                outcome = consumer.deliver(self.read(received))
            except HapaxError:
                log.exception("a message of %s is left to come again", self.url)
                outcome = Outcome(is_done=False, acted=False, pause=OUTAGE_PAUSE_SECONDS)
            if not outcome.is_done:
                # Of a group nothing may overtake what has to come again.
                for later in group[at:]:
                    under_way.pop(later["ReceiptHandle"], None)
                    self.hide(later, outcome.pause)
                return
            under_way.pop(received["ReceiptHandle"], None)
            self.delete(received)

    def delete(self, received: Received) -> None:
        self.sqs.delete_message(QueueUrl=self.url, ReceiptHandle=received["ReceiptHandle"])

    def hide(self, received: Received, seconds: float) -> None:
        self.sqs.change_message_visibility(
            QueueUrl=self.url,
            ReceiptHandle=received["ReceiptHandle"],
            VisibilityTimeout=min(math.ceil(seconds), VISIBILITY_SECONDS_MAX),
        )

    @contextmanager
    def hiding(self, messages: Iterable[Received]) -> Iterator[dict[str, Received]]:
        """Keeps messages hidden; yields which, and what is taken from it is no longer hidden."""
        under_way = {received["ReceiptHandle"]: received for received in messages}
        ended = threading.Event()

        def hide_again() -> None:
            while not ended.wait(self.visibility_seconds * 0.3):
                for received in list(under_way.values()):
                    try:
                        self.hide(received, self.visibility_seconds)
                    except (BotoCoreError, ClientError):
                        log.warning("a message could not be hidden for longer", exc_info=True)

        hider = threading.Thread(target=hide_again, name="hapax-sqs", daemon=True)
        hider.start()
        try:
            yield under_way
        finally:
            ended.set()
            hider.join()

    def read(self, received: Received, message_id: str | None = None) -> Message:
        """A message, with what the relay of Hapax wrote read back as it was before."""
        attributes = received.get("MessageAttributes", {})
        headers = {name.lower(): said.get("StringValue", "") for name, said in attributes.items()}
        encoding = headers.pop("hapax-encoding", "")
        own = headers_of(headers.pop("hapax-headers", "{}"))
        return Message.received(
            payload(received["Body"], encoding),
            {**own, **headers},
            named=message_id,
            broker_id=received["MessageId"],
            key=headers.get("ce-subject") or group_of(received),
            source=self.url.rpartition("/")[2],
        )


def groups(messages: Iterable[Received]) -> list[list[Received]]:
    """Messages of one group of a FIFO queue together, in their order; every other one alone."""
    found: dict[str, list[Received]] = {}
    for received in messages:
        group = group_of(received)
        name = f"handle {received['ReceiptHandle']}" if group is None else f"group {group}"
        found.setdefault(name, []).append(received)
    return list(found.values())


def group_of(received: Received) -> str | None:
    group: str | None = received.get("Attributes", {}).get("MessageGroupId")
    return group


def headers_of(text: str) -> dict[str, str]:
    """Headers for which SQS had no attributes left, as the relay writes them; else none."""
    try:
        own = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(own, dict):
        return {}
    return {str(name).lower(): str(value) for name, value in own.items()}


def payload(body: str, encoding: str) -> bytes:
    """The payload as it was before the relay of Hapax made it fit for SQS."""
    if encoding == "empty":
        return b""
    return base64.b64decode(body) if encoding == "base64" else body.encode()
