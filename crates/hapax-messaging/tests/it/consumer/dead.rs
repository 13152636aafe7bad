//! Messages that cannot be acted on.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
};

use hapax_core::outbox::Stored;
use hapax_messaging::{
    consumer::{
        Consumer, DeadLetters, HandlerError, ID_HEADER, Incoming, Message, Naming, REASON_HEADER,
    },
    sink::{Outage, Sink, Verdict},
};

use super::{
    base::Base,
    on_every_base,
    queue::Queue,
    scene::{TxOf, consume, dead, effects, hurried, incoming, kept, name, record},
};

on_every_base! {
    poison_is_a_dead_letter_after_its_attempts_and_holds_up_nobody,
    a_handler_that_panics_is_poison,
    a_name_used_for_other_content_is_a_dead_letter,
    a_message_without_a_name_is_a_dead_letter,
    a_dead_letter_that_is_not_taken_leaves_the_message,
}

async fn explode<B: Base>(tx: TxOf<B>, message: Arc<Message>) -> Result<(), HandlerError> {
    if message.payload == "poison" {
        return Err("it explodes".into());
    }
    record::<B>(tx, message).await
}

async fn poison_is_a_dead_letter_after_its_attempts_and_holds_up_nobody<B: Base>() {
    let base = B::create().await;
    let queue = Queue::deaf(1);
    queue.push(incoming("bad", "poison"));
    queue.push(incoming("good", "{}"));
    consume(&base, &queue, hurried(), Naming::default(), explode::<B>).await.unwrap();
    assert_eq!(effects(&base).await, ["good"]);
    assert_eq!(dead(&base).await, ["bad poison"]);
    assert_eq!(kept(&base).await, ["bad failed", "good done"]);
    assert_eq!(queue.put_back().len(), 2, "three attempts have two pauses");
}

async fn a_handler_that_panics_is_poison<B: Base>() {
    let base = B::create().await;
    let queue = Queue::default();
    queue.push(incoming("bad", "{}"));
    let handler = |mut tx: TxOf<B>, _: Arc<Message>| async move {
        B::act(&mut tx, "never").await?;
        panic!("on purpose")
    };
    consume(&base, &queue, hurried(), Naming::default(), handler).await.unwrap();
    assert!(effects(&base).await.is_empty());
    assert_eq!(dead(&base).await, ["bad poison"]);
}

async fn a_name_used_for_other_content_is_a_dead_letter<B: Base>() {
    let base = B::create().await;
    let queue = Queue::default();
    queue.push(incoming("m-1", "one"));
    consume(&base, &queue, hurried(), Naming::default(), record::<B>).await.unwrap();
    queue.push(incoming("m-1", "another"));
    consume(&base, &queue, hurried(), Naming::default(), record::<B>).await.unwrap();
    assert_eq!(effects(&base).await, ["m-1"]);
    assert_eq!(dead(&base).await, ["m-1 id-conflict"]);
    assert_eq!(queue.done().len(), 2);
}

async fn a_message_without_a_name_is_a_dead_letter<B: Base>() {
    let base = B::create().await;
    let queue = Queue::default();
    queue.push(Incoming { broker_id: None, ..incoming("", "{}") });
    queue.push(incoming("not\nvisible", "{}"));
    consume(&base, &queue, hurried(), Naming::default(), record::<B>).await.unwrap();
    assert!(effects(&base).await.is_empty());
    let letters = dead(&base).await;
    assert!(letters.iter().all(|letter| letter.ends_with(" no-id")), "{letters:?}");
}

/// A place that is away at first, and then keeps what it is sent.
#[derive(Clone, Default)]
struct Morgue {
    asked: Arc<AtomicU32>,
    letters: Arc<Mutex<Vec<Stored>>>,
}

impl Sink for Morgue {
    async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
        if self.asked.fetch_add(1, Ordering::SeqCst) < 2 {
            return Err(Outage::new("nobody is there"));
        }
        self.letters.lock().unwrap().extend_from_slice(events);
        Ok(vec![Verdict::Taken; events.len()])
    }
}

async fn a_dead_letter_that_is_not_taken_leaves_the_message<B: Base>() {
    let base = B::create().await;
    let (queue, morgue) = (Queue::default(), Morgue::default());
    queue.push(incoming("bad", "poison"));
    let consumer = Consumer::new(name(), base.inbox(), explode::<B>).options(hurried());
    let consumer = consumer.dead_letters(DeadLetters::sink(morgue.clone(), "orders.dead"));
    consumer.run(queue.clone(), pending()).await.unwrap();
    let letters = morgue.letters.lock().unwrap();
    assert_eq!(letters.len(), 1);
    let header = |name: &str| {
        let header = letters[0].headers.iter().find(|header| header.name == name).unwrap();
        header.value.clone()
    };
    assert_eq!((&*letters[0].topic, &letters[0].payload[..]), ("orders.dead", &b"poison"[..]));
    assert_eq!(header(REASON_HEADER), "poison");
    assert_eq!(header(ID_HEADER), "bad");
    assert_eq!(queue.done(), ["bad"]);
}
