//! A database, a queue, and a consumer that is in a hurry.

use std::{future::pending, sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_core::{
    Scope,
    inbox::Inbox,
    retry::{Backoff, Jitter, Schedule},
};
use hapax_messaging::consumer::{
    Consumer, HandlerError, Incoming, Message, Naming, Options, RunError, Tx,
};

use super::{base::Base, queue::Queue};

pub(crate) type TxOf<B> = Tx<<<B as Base>::Inbox as Inbox>::Transaction>;

pub(crate) fn name() -> Scope {
    Scope::parse("mailer").unwrap()
}

/// Three attempts, and pauses that a test can wait for.
pub(crate) fn hurried() -> Options {
    let (base, cap) = (Duration::from_millis(5), Duration::from_millis(20));
    let backoff = Backoff { jitter: Jitter::None, base, cap };
    Options {
        attempts: Schedule::new(backoff, 3).unwrap(),
        busy_pause: Duration::from_millis(10),
        outage_pause: Duration::from_millis(10),
        patrol: Duration::from_millis(20),
        ..Options::default()
    }
}

/// A message of the queue's own.
pub(crate) fn incoming(id: &str, payload: &str) -> Incoming {
    Incoming {
        source: "orders".to_owned(),
        broker_id: Some(id.to_owned()),
        key: None,
        payload: Bytes::from(payload.to_owned()),
        headers: Vec::new(),
        deliveries: None,
        place: None,
    }
}

/// Writes an effect named after the message.
pub(crate) async fn record<B: Base>(
    mut tx: TxOf<B>,
    message: Arc<Message>,
) -> Result<(), HandlerError> {
    B::act(&mut tx, message.id.as_str()).await
}

/// Consumes everything in the queue.
pub(crate) async fn consume<B, H, F>(
    base: &B,
    queue: &Queue,
    options: Options,
    naming: Naming,
    handler: H,
) -> Result<(), RunError>
where
    B: Base,
    H: Fn(TxOf<B>, Arc<Message>) -> F + Send + Sync + 'static,
    F: Future<Output = Result<(), HandlerError>> + Send + 'static,
{
    let consumer = Consumer::new(name(), base.inbox(), handler).options(options).naming(naming);
    consumer.run(queue.clone(), pending()).await
}

/// The names of the effects, in the order they were committed in.
pub(crate) async fn effects<B: Base>(base: &B) -> Vec<String> {
    base.texts("SELECT name FROM effects").await
}

/// The message ids and reasons of the dead letters.
pub(crate) async fn dead<B: Base>(base: &B) -> Vec<String> {
    let table = B::named("inbox_dead_readable");
    base.texts(&format!("SELECT message_id || ' ' || reason FROM {table} ORDER BY 1")).await
}

/// What became of the messages that are kept.
pub(crate) async fn kept<B: Base>(base: &B) -> Vec<String> {
    let table = B::named("inbox_readable");
    base.texts(&format!("SELECT message_id || ' ' || state FROM {table} ORDER BY 1")).await
}
