//! SQS, as ElasticMQ speaks it.

use std::time::Duration;

use hapax_messaging::{
    consumer::{Disposition, Receipt},
    sink,
    source::sqs::{Sqs, SqsOptions},
    sqs::{Credentials, Queue, QueueOptions},
};
use hapax_services::{roster::Service, sqs};
use serde_json::json;

use super::{
    effects::one_effect,
    suite::{World, id, next, nothing, send, source_conformance, source_patience},
};
use crate::{
    servers::{Own, shared, sqs_ask, unique},
    sink::world::turns,
};

struct Fifo {
    url: String,
    server: Option<Own>,
}

source_conformance!(Fifo);
one_effect!(Fifo);
source_patience!(Fifo);

const VISIBILITY: Duration = Duration::from_secs(2);

impl Fifo {
    async fn make(server_url: &str, server: Option<Own>) -> Self {
        let name = format!("{}.fifo", unique("source"));
        let asked = json!({"QueueName": name, "Attributes": {"FifoQueue": "true"}});
        let made = sqs_ask(server_url, "CreateQueue", asked).await;
        Self { url: made["QueueUrl"].as_str().unwrap().to_owned(), server }
    }

    fn queue(&self) -> Queue {
        queue(&self.url)
    }
}

fn queue(url: &str) -> Queue {
    let options = QueueOptions {
        region: Some("elasticmq".to_owned()),
        credentials: Some(Credentials::new("id", "secret", None)),
        endpoint: None,
    };
    Queue::new(url, options).unwrap()
}

impl World for Fifo {
    type Sink = sink::Sqs;
    type Source = Sqs;

    const PATIENCE: Option<Duration> = Some(VISIBILITY);
    const COUNTS: bool = true;

    async fn open() -> Self {
        Self::make(&shared(Service::Sqs), None).await
    }

    async fn alone() -> Self {
        let server = Own::start(sqs::start).await;
        let url = server.url().to_owned();
        Self::make(&url, Some(server)).await
    }

    fn server(&mut self) -> &mut Own {
        self.server.as_mut().expect("it is alone")
    }

    fn topic(&self) -> String {
        "orders.placed".to_owned()
    }

    fn sink(&self) -> sink::Sqs {
        sink::Sqs::to(self.queue()).unwrap()
    }

    async fn source(&self) -> Sqs {
        let options = SqsOptions { visibility: VISIBILITY, ..SqsOptions::default() };
        Sqs::open(self.queue(), options).await.unwrap()
    }
}

#[tokio::test]
async fn one_message_of_a_group_is_under_way_at_a_time() {
    let world = Fifo::open().await;
    let mut source = world.source().await;
    let events = turns(&world.topic(), 1, 3);
    send(&world.sink(), &events).await;
    for event in &events {
        let delivery = next(&mut source).await;
        assert_eq!(id(&delivery.incoming), event.id.to_string());
        nothing(&mut source, Duration::from_millis(200)).await;
        delivery.receipt.settle(Disposition::Done).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_put_back_goes_before_what_is_behind_it() {
    let world = Fifo::open().await;
    let mut source = world.source().await;
    let events = turns(&world.topic(), 1, 4);
    send(&world.sink(), &events).await;
    next(&mut source).await.receipt.settle(Disposition::Later(Duration::ZERO)).await.unwrap();
    for event in &events {
        let delivery = next(&mut source).await;
        assert_eq!(id(&delivery.incoming), event.id.to_string());
        delivery.receipt.settle(Disposition::Done).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_dropped_goes_before_what_is_behind_it() {
    let world = Fifo::open().await;
    let mut source = world.source().await;
    let events = turns(&world.topic(), 1, 3);
    send(&world.sink(), &events).await;
    drop(next(&mut source).await);
    for event in &events {
        let delivery = next(&mut source).await;
        assert_eq!(id(&delivery.incoming), event.id.to_string());
        delivery.receipt.settle(Disposition::Done).await.unwrap();
    }
}

#[tokio::test]
async fn messages_of_strangers_are_read_too() {
    let server = shared(Service::Sqs);
    let name = unique("plain");
    let made = sqs_ask(&server, "CreateQueue", json!({"QueueName": name})).await;
    let url = made["QueueUrl"].as_str().unwrap();
    let text = |value: &str| json!({"DataType": "String", "StringValue": value});
    let sent = json!({
        "QueueUrl": url,
        "MessageBody": "hello",
        "MessageAttributes": {
            "colour": text("blue"),
            "raw": {"DataType": "Binary", "BinaryValue": "AP8="},
            "hapax-encoding": text("unheard of"),
        },
    });
    let sent = sqs_ask(&server, "SendMessage", sent).await;
    let mut source = Sqs::open(queue(url), SqsOptions::default()).await.unwrap();
    let incoming = next(&mut source).await.incoming;
    assert_eq!(incoming.payload, "hello");
    assert_eq!(incoming.header("colour"), Some("blue"));
    let raw = incoming.headers.iter().find(|header| header.name == "raw").unwrap();
    assert_eq!(raw.value.as_ref(), b"\x00\xff");
    assert_eq!(incoming.broker_id.as_deref(), sent["MessageId"].as_str());
    assert_eq!((incoming.key, incoming.source), (None, name));
}

#[tokio::test]
async fn a_queue_that_is_not_there_is_told_at_once() {
    let url = format!("{}/000000000000/{}", shared(Service::Sqs), unique("none"));
    let refused = Sqs::open(queue(&url), SqsOptions::default()).await.unwrap_err();
    assert!(refused.to_string().contains("find the queue"), "{refused}");
}
