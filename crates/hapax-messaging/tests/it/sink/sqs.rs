//! SQS, as ElasticMQ speaks it.

use std::{collections::BTreeMap, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hapax_core::outbox::Stored;
use hapax_messaging::{
    sink::{CloudEvents, Sink, Sqs, Verdict},
    sqs::{Credentials, Queue, QueueError, QueueOptions},
};
use hapax_services::{roster::Service, sqs};
use serde_json::{Value, json};

use super::{
    suite::{sink_conformance, sink_deduplication, sink_outages, sink_refusals},
    world::{Arrived, Breakable, Choosy, World, event, turns},
};
use crate::servers::{Own, shared, sqs_ask, unique};

/// A queue of its own.
struct Fifo {
    server_url: String,
    url: String,
    server: Option<Own>,
}

sink_conformance!(Fifo);
sink_refusals!(Fifo);
sink_deduplication!(Fifo);
sink_outages!(Fifo);

impl Fifo {
    async fn make(server_url: &str, server: Option<Own>) -> Self {
        let attributes = json!({"FifoQueue": "true", "VisibilityTimeout": "60"});
        let name = format!("{}.fifo", unique("sink"));
        let asked = json!({"QueueName": name, "Attributes": attributes});
        let made = sqs_ask(server_url, "CreateQueue", asked).await;
        let url = made["QueueUrl"].as_str().unwrap().to_owned();
        Self { server_url: server_url.to_owned(), url, server }
    }

    fn queue(&self) -> Queue {
        Queue::new(&self.url, options()).unwrap()
    }

    fn server(&mut self) -> &mut Own {
        self.server.as_mut().expect("it is alone")
    }
}

fn options() -> QueueOptions {
    QueueOptions {
        region: Some("elasticmq".to_owned()),
        credentials: Some(Credentials::new("id", "secret", None)),
        endpoint: None,
    }
}

impl World for Fifo {
    type Sink = Sqs;

    const PAYLOAD_BYTES_MAX: usize = (1 << 20) - 2048;

    async fn open() -> Self {
        Self::make(&shared(Service::Sqs), None).await
    }

    fn topic(&self) -> String {
        "orders.placed".to_owned()
    }

    async fn sink(&self) -> Sqs {
        let events = CloudEvents::from_source("/suite").unwrap();
        Sqs::to(self.queue()).unwrap().events(events).within(Duration::from_secs(3))
    }

    async fn arrived(&mut self) -> Vec<Arrived> {
        let mut arrived = Vec::new();
        loop {
            let asked = json!({
                "QueueUrl": self.url,
                "MaxNumberOfMessages": 10,
                "AttributeNames": ["All"],
                "MessageAttributeNames": ["All"],
            });
            let found = sqs_ask(&self.server_url, "ReceiveMessage", asked).await;
            let Some(messages) = found["Messages"].as_array().filter(|found| !found.is_empty())
            else {
                return arrived;
            };
            arrived.extend(messages.iter().map(read));
            let entry = |(at, message): (usize, &Value)| json!({"Id": at.to_string(), "ReceiptHandle": message["ReceiptHandle"]});
            let entries: Vec<_> = messages.iter().enumerate().map(entry).collect();
            let asked = json!({"QueueUrl": self.url, "Entries": entries});
            sqs_ask(&self.server_url, "DeleteMessageBatch", asked).await;
        }
    }
}

fn read(message: &Value) -> Arrived {
    let attributes = message["MessageAttributes"].as_object().unwrap();
    let mut texts: BTreeMap<String, String> = attributes
        .iter()
        .map(|(name, value)| (name.clone(), value["StringValue"].as_str().unwrap().to_owned()))
        .collect();
    let body = message["Body"].as_str().unwrap();
    let payload = match texts.remove("hapax-encoding").as_deref() {
        None => body.as_bytes().to_vec(),
        Some("base64") => STANDARD.decode(body).unwrap(),
        Some("empty") => Vec::new(),
        Some(other) => panic!("{other}"),
    };
    let own: BTreeMap<String, String> = texts
        .remove("hapax-headers")
        .map(|headers| serde_json::from_str(&headers).unwrap())
        .unwrap_or_default();
    let content_type = texts.remove("content-type").unwrap();
    texts.extend(own);
    let event = Arrived::from_headers(texts, "ce-", content_type, payload);
    assert_eq!(message["Attributes"]["MessageDeduplicationId"], event.id);
    event
}

impl Choosy for Fifo {
    fn unwelcome(&self, event: Stored) -> Stored {
        Stored { payload: vec![b'1'; (1 << 20) + 1].into(), ..event }
    }
}

impl Breakable for Fifo {
    const PATIENCE: Duration = Duration::from_secs(10);

    async fn alone() -> Self {
        let server = Own::start(sqs::start).await;
        let url = server.url().to_owned();
        Self::make(&url, Some(server)).await
    }

    async fn kill(&mut self) {
        self.server().kill().await;
    }

    async fn revive(&mut self) {
        self.server().revive().await;
    }

    fn freeze(&mut self) {
        self.server().freeze();
    }

    fn thaw(&mut self) {
        self.server().thaw();
    }
}

#[tokio::test]
async fn requests_are_as_full_as_they_can_be_and_no_fuller() {
    let mut world = Fifo::open().await;
    let large: Vec<_> =
        (0..25).map(|turn| event("orders", &format!("key-{turn}"), vec![b'1'; 40 << 10])).collect();
    let verdicts = world.sink().await.send(&large).await.unwrap();
    assert_eq!(verdicts, vec![Verdict::Taken; large.len()]);
    assert_eq!(world.arrived().await.len(), large.len());
}

#[tokio::test]
async fn what_no_attribute_can_hold_is_refused() {
    let world = Fifo::open().await;
    let odd = event("orders", "a\u{1}b", "1");
    let verdicts = world.sink().await.send(&[odd]).await.unwrap();
    assert!(matches!(&verdicts[..], [Verdict::Refused(why)] if why.contains("ce-subject")));
}

#[tokio::test]
async fn a_queue_that_is_not_there_is_an_outage() {
    let world = Fifo::open().await;
    let url = world.url.replace("sink-", "none-");
    let sink = Sqs::to(Queue::new(&url, options()).unwrap()).unwrap();
    let outage = sink.send(&turns("orders", 1, 1)).await.unwrap_err();
    assert!(!outage.needs_somebody(), "{outage:?}");
}

#[test]
fn a_queue_without_order_is_refused_before_anything_is_sent() {
    let queue = Queue::new("https://sqs.eu-central-1.amazonaws.com/1/orders", options()).unwrap();
    assert!(matches!(Sqs::to(queue), Err(QueueError::NoOrder { .. })));
}
