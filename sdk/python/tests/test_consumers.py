"""Consumers on real brokers: a message is acted on once; what fails comes again or is a letter."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from conftest import needed
from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from hapax_once import Failed, Message, deliveries, errors
from hapax_once.consumer import AsyncConsumer, Consumer
from hapax_once.psycopg import AsyncDatabase, Database

Effects = Callable[[], list[str]]
PATIENCE_SECONDS = 20.0


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "PAUSE_SECONDS", 0.05)


@pytest.fixture
def pool(url: str) -> Iterator[ConnectionPool[Any]]:
    with ConnectionPool(url, min_size=1, max_size=4) as pool:
        yield pool


class Handler:
    """Writes what it is told; fails where the message says so."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def __call__(self, db: Connection[Any], message: Message) -> None:
        db.execute("INSERT INTO effects VALUES (%s)", (self.decided(message),))
        self.fail(message)

    async def acts(self, db: AsyncConnection[Any], message: Message) -> None:
        await db.execute("INSERT INTO effects VALUES (%s)", (self.decided(message),))
        self.fail(message)

    def decided(self, message: Message) -> str:
        name = message.content.decode()
        self.calls.append(name)
        return name

    def fail(self, message: Message) -> None:
        name = message.content.decode()
        if name == "never":
            raise Failed("no address")
        if name == "poison" or (name == "twice" and self.calls.count(name) < 3):
            raise ValueError("not now")


SENT = ["one", "twice", "never", "poison", "two"]
CALLS = {"one": 1, "twice": 3, "never": 1, "poison": 4, "two": 1}
EFFECTS = ["one", "twice", "two"]


def check(handler: Handler, effects: Effects, hapax: Any) -> None:
    """What came of the messages that were sent, each of them two times."""
    assert effects() == EFFECTS
    assert {name: handler.calls.count(name) for name in SENT} == CALLS
    letters = "SELECT message_id, reason, payload FROM hapax.inbox_dead_readable"
    assert hapax.execute(letters) == [("id-poison", "poison", "poison")]
    failed = "SELECT message_id, reason FROM hapax.inbox_readable WHERE state = 'failed' ORDER BY 1"
    assert hapax.execute(failed) == [("id-never", "no address"), ("id-poison", "not now")]


def is_over(hapax: Any) -> bool:
    (count,) = hapax.execute("SELECT count(*) FROM hapax.inbox")[0]
    return bool(count == len(SENT))


async def test_nats(url: str, effects: Effects, hapax: Any) -> None:
    import nats
    from nats.js.api import ConsumerConfig

    from hapax_once.nats import deliver

    client = await nats.connect(needed("nats"))
    jetstream, stream = client.jetstream(), f"s{uuid.uuid4().hex}"
    # The broker must not drop the copies: that is for the consumer to do.
    await jetstream.add_stream(name=stream, subjects=[stream], duplicate_window=0.1)
    async with AsyncConnectionPool(url, min_size=1, open=False) as pool:
        handler = Handler()
        consumer = AsyncConsumer("mailer", AsyncDatabase(pool), handler.acts, attempts_max=4)
        config = ConsumerConfig(ack_wait=10)
        subscription = await jetstream.pull_subscribe(stream, "mailer", config=config)
        for _ in range(2):
            for name in SENT:
                await jetstream.publish(
                    stream, name.encode(), headers={"Nats-Msg-Id": f"id-{name}"}
                )
            await asyncio.sleep(0.2)
        ends = time.monotonic() + PATIENCE_SECONDS
        while (await subscription.consumer_info()).num_ack_pending or not is_over(hapax):
            assert time.monotonic() < ends
            try:
                for message in await subscription.fetch(10, timeout=0.3):
                    await deliver(consumer, message)
            except nats.errors.TimeoutError:
                continue
    await jetstream.delete_stream(stream)
    await client.close()
    check(handler, effects, hapax)


async def test_nats_names_what_its_sender_did_not(url: str, effects: Effects, hapax: Any) -> None:
    import nats

    from hapax_once.nats import deliver

    client = await nats.connect(needed("nats"))
    jetstream, stream = client.jetstream(), f"s{uuid.uuid4().hex}"
    await jetstream.add_stream(name=stream, subjects=[stream])
    await jetstream.publish(stream, b"one")
    subscription = await jetstream.pull_subscribe(stream, "mailer")
    async with AsyncConnectionPool(url, min_size=1, open=False) as pool:
        consumer = AsyncConsumer("mailer", AsyncDatabase(pool), Handler().acts)
        (message,) = await subscription.fetch(1)
        assert (await deliver(consumer, message)).is_done
    assert hapax.execute("SELECT message_id FROM hapax.inbox") == [(f"{stream}:1",)]
    await jetstream.delete_stream(stream)
    await client.close()


def test_pika(pool: ConnectionPool[Any], effects: Effects, hapax: Any) -> None:
    import pika

    from hapax_once.pika import deliver

    handler, queue = Handler(), f"q{uuid.uuid4().hex}"
    consumer = Consumer("mailer", Database(pool), handler, attempts_max=4)
    connection = pika.BlockingConnection(pika.URLParameters(needed("rabbitmq")))
    channel = connection.channel()
    channel.queue_declare(queue, exclusive=True)
    for name in [*SENT, *SENT]:
        properties = pika.BasicProperties(message_id=f"id-{name}")
        channel.basic_publish("", queue, name.encode(), properties)
    channel.basic_consume(queue, partial(deliver, consumer))  # type: ignore[arg-type]
    ends = time.monotonic() + PATIENCE_SECONDS
    quiet = time.monotonic()
    while time.monotonic() - quiet < 0.7 or not is_over(hapax):
        assert time.monotonic() < ends
        before = len(handler.calls)
        connection.process_data_events(time_limit=0.1)
        if len(handler.calls) > before:
            quiet = time.monotonic()
    channel.cancel()
    assert channel.queue_declare(queue, passive=True).method.message_count == 0
    connection.close()
    check(handler, effects, hapax)


async def test_aio_pika(url: str, effects: Effects, hapax: Any) -> None:
    import aio_pika

    from hapax_once.aio_pika import deliver

    connection = await aio_pika.connect(needed("rabbitmq"))
    async with connection, AsyncConnectionPool(url, min_size=1, open=False) as pool:
        handler = Handler()
        consumer = AsyncConsumer("mailer", AsyncDatabase(pool), handler.acts, attempts_max=4)
        channel = await connection.channel()
        queue = await channel.declare_queue(exclusive=True)
        for name in [*SENT, *SENT]:
            sent = aio_pika.Message(name.encode(), message_id=f"id-{name}")
            await channel.default_exchange.publish(sent, queue.name)
        ends = time.monotonic() + PATIENCE_SECONDS
        quiet = 0
        while quiet < 3 or not is_over(hapax):
            assert time.monotonic() < ends
            message = await queue.get(fail=False)
            if message is None:
                quiet += 1
                await asyncio.sleep(0.05)
            else:
                quiet = 0
                await deliver(consumer, message)
    check(handler, effects, hapax)


def test_a_message_without_an_id_is_left_to_come_again(
    pool: ConnectionPool[Any], effects: Effects
) -> None:
    import pika

    from hapax_once.pika import deliver

    connection = pika.BlockingConnection(pika.URLParameters(needed("rabbitmq")))
    channel, queue = connection.channel(), f"q{uuid.uuid4().hex}"
    channel.queue_declare(queue, exclusive=True)
    channel.basic_publish("", queue, b"one")
    consumer = Consumer("mailer", Database(pool), Handler())
    received: Any = channel.basic_get(queue)
    act: Any = partial(deliver, consumer, channel)
    with pytest.raises(errors.NoMessageId):
        act(*received)
    assert effects() == []
    outcome = act(*received, "named-by-us")
    assert (outcome.is_done, effects()) == (True, ["one"])
    connection.close()


def test_kafka(pool: ConnectionPool[Any], effects: Effects, hapax: Any) -> None:
    from confluent_kafka import Consumer as Group
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient
    from confluent_kafka.cimpl import NewTopic

    from hapax_once.kafka import deliver

    servers: dict[str, str | int | float | bool] = {
        "bootstrap.servers": needed("kafka").removeprefix("kafka://")
    }
    topic = f"t{uuid.uuid4().hex}"
    admin = AdminClient(servers)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result()
    producer = Producer(servers)
    for name in [*SENT, *SENT]:
        producer.produce(topic, name.encode(), key=b"a", headers={"ce_id": f"id-{name}".encode()})
    producer.flush()
    handler = Handler()
    consumer = Consumer("mailer", Database(pool), handler, attempts_max=4)
    settings = {"group.id": topic, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    group = Group({**servers, **settings})
    group.subscribe([topic])
    ends, done = time.monotonic() + 2 * PATIENCE_SECONDS, 0
    while done < 2 * len(SENT):
        assert time.monotonic() < ends
        message = group.poll(0.2)
        if message is not None and message.error() is None:
            done += deliver(consumer, group, message).is_done
    assert [place.offset for place in group.committed(group.assignment())] == [2 * len(SENT)]
    group.close()
    admin.delete_topics([topic])[topic].result()
    check(handler, effects, hapax)
    assert handler.calls == ["one", *["twice"] * 3, "never", *["poison"] * 4, "two"], "in order"


@pytest.fixture
def sqs() -> Iterator[Any]:
    import boto3

    client = boto3.client(
        "sqs",
        endpoint_url=needed("sqs"),
        region_name="elasticmq",
        aws_access_key_id="x",
        aws_secret_access_key="x",
    )
    yield client
    client.close()


def texts(attributes: dict[str, str]) -> dict[str, Any]:
    return {
        name: {"DataType": "String", "StringValue": value} for name, value in attributes.items()
    }


def test_sqs(pool: ConnectionPool[Any], effects: Effects, hapax: Any, sqs: Any) -> None:
    from hapax_once.sqs import deliver

    url = sqs.create_queue(QueueName=f"q{uuid.uuid4().hex}")["QueueUrl"]
    for name in [*SENT, *SENT]:
        attributes = texts({"ce-id": f"id-{name}"})
        sqs.send_message(QueueUrl=url, MessageBody=name, MessageAttributes=attributes)
    handler = Handler()
    consumer = Consumer("mailer", Database(pool), handler, attempts_max=4)
    ends, done = time.monotonic() + PATIENCE_SECONDS, 0
    while done < 2 * len(SENT):
        assert time.monotonic() < ends
        received = sqs.receive_message(
            QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1, MessageAttributeNames=["All"]
        )
        for message in received.get("Messages", []):
            done += deliver(consumer, sqs, url, message).is_done
    sqs.delete_queue(QueueUrl=url)
    check(handler, effects, hapax)


def test_sqs_keeps_groups_in_order_and_hides_what_is_worked_on(
    pool: ConnectionPool[Any], effects: Effects, sqs: Any
) -> None:
    from hapax_once.sqs import poll

    url = sqs.create_queue(QueueName=f"q{uuid.uuid4().hex}.fifo", Attributes={"FifoQueue": "true"})[
        "QueueUrl"
    ]
    for group, name in [("a", "twice"), ("a", "two"), ("b", "long"), ("a", "last")]:
        sqs.send_message(
            QueueUrl=url,
            MessageBody=name,
            MessageAttributes=texts(
                {"ce-id": f"id-{name}", "hapax-headers": '{"X-Trace": "t-1", "ce-type": "mail"}'}
            ),
            MessageGroupId=group,
            MessageDeduplicationId=name,
        )
    hidden, stop, seen = threading.Event(), threading.Event(), list[Message]()
    sqs.meta.events.register(
        "before-call.sqs.ChangeMessageVisibility", lambda **_: hidden.set(), unique_id="hidden"
    )

    class Mailer(Handler):
        def __call__(self, db: Connection[Any], message: Message) -> None:
            seen.append(message)
            if message.content == b"long":
                hidden.clear()
                assert hidden.wait(120), "it is hidden for longer while it is worked on"
            super().__call__(db, message)
            if len(effects()) == 3:
                stop.set()

    mailer = Mailer()
    consumer = Consumer("mailer", Database(pool), mailer)
    poll(consumer, sqs, url, stop=stop, poll_seconds=1, visibility_seconds=3)
    left = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
    sqs.delete_queue(QueueUrl=url)
    assert sorted(effects()) == ["last", "long", "twice", "two"]
    assert [name for name in mailer.calls if name != "long"] == [*["twice"] * 3, "two", "last"]
    assert (left["ApproximateNumberOfMessages"], mailer.calls.count("long")) == ("0", 1)
    assert {message.key for message in seen if message.content == b"long"} == {"b"}
    assert seen[0].headers == {"x-trace": "t-1", "ce-type": "mail", "ce-id": "id-twice"}


def test_a_database_that_is_away_costs_no_attempt() -> None:
    pool = ConnectionPool("postgres://nobody@127.0.0.1:1/none", min_size=0, max_size=1, timeout=0.2)
    with pool:
        outcome = Consumer("mailer", Database(pool), Handler()).deliver(Message("id-one", b"one"))
    assert (outcome.is_done, outcome.acted) == (False, False)
    assert outcome.pause > 0


def test_a_conflict_costs_no_attempt(pool: ConnectionPool[Any], hapax: Any) -> None:
    def conflicting(db: Connection[Any], message: Message) -> None:
        db.execute("DO $$BEGIN RAISE SQLSTATE '40001'; END$$")

    consumer = Consumer("mailer", Database(pool), conflicting, attempts_max=1)
    assert not consumer.deliver(Message("id-one", b"one")).is_done
    assert hapax.execute("SELECT count(*) FROM hapax.inbox_attempts") == [(0,)]
    assert hapax.execute("SELECT count(*) FROM hapax.inbox_dead") == [(0,)]


def test_a_second_delivery_while_the_first_is_at_work_comes_again(
    pool: ConnectionPool[Any], effects: Effects
) -> None:
    from datetime import timedelta

    consumer = Consumer("mailer", Database(pool), Handler(), wait=timedelta())
    assert consumer.deliver(Message("id-two", b"two")).acted

    def nested(db: Connection[Any], message: Message) -> None:
        again = consumer.deliver(Message("id-one", b"one"))
        assert (again.is_done, again.acted) == (False, False)

    first = Consumer("mailer", Database(pool), nested, wait=timedelta())
    assert first.deliver(Message("id-one", b"one")).is_done
    assert effects() == ["two"]
