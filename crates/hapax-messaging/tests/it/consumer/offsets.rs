//! Progress by offset, kept with the effects.

use std::{
    future::pending,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use hapax_core::inbox::Inbox as _;
use hapax_messaging::consumer::{
    Consumer, HandlerError, Message, Naming, Options, ProgressStorage, RunError,
};

use super::{
    base::{Base, Sqlite},
    log::{Log, partition},
    on_every_base,
    queue::Queue,
    scene::{TxOf, consume, effects, hurried, incoming, kept, name, record},
};

on_every_base! {
    a_log_is_read_on_from_where_its_effects_are,
    a_message_that_fails_is_tried_again_before_those_behind_it,
    a_partition_that_goes_elsewhere_is_finished_first,
    whoever_lost_its_partition_acts_on_nothing_more,
}

fn by_offset() -> Options {
    Options { progress: ProgressStorage::Offsets, ..hurried() }
}

fn names(offsets: std::ops::Range<i64>) -> Vec<String> {
    offsets.map(|offset| format!("orders/0/{offset}")).collect()
}

async fn a_log_is_read_on_from_where_its_effects_are<B: Base>() {
    let base = B::create().await;
    for (messages, from) in [(6, None), (10, Some(6))] {
        let (log, seen) = Log::new(messages);
        let consumer = Consumer::new(name(), base.inbox(), record::<B>).options(by_offset());
        consumer.run(log, pending()).await.unwrap();
        assert_eq!(seen.started(), [from]);
    }
    assert_eq!(effects(&base).await, names(0..10));
    assert!(kept(&base).await.is_empty(), "there is no record for each message");
}

async fn a_message_that_fails_is_tried_again_before_those_behind_it<B: Base>() {
    let base = B::create().await;
    let calls = Arc::new(AtomicU32::new(0));
    let handler = move |tx: TxOf<B>, message: Arc<Message>| {
        let calls = Arc::clone(&calls);
        async move {
            let fails = message.id.as_str() == "orders/0/2";
            if fails && calls.fetch_add(1, Ordering::SeqCst) < 2 {
                return Err(HandlerError::from("not now"));
            }
            record::<B>(tx, message).await
        }
    };
    let (log, _) = Log::new(5);
    let consumer = Consumer::new(name(), base.inbox(), handler).options(by_offset());
    consumer.run(log, pending()).await.unwrap();
    assert_eq!(effects(&base).await, names(0..5));
}

async fn a_partition_that_goes_elsewhere_is_finished_first<B: Base>() {
    let base = B::create().await;
    let (mut log, seen) = Log::new(8);
    log.revoke_after = Some(4);
    let consumer = Consumer::new(name(), base.inbox(), record::<B>).options(by_offset());
    consumer.run(log, pending()).await.unwrap();
    assert_eq!(seen.unsettled_at_release(), [0]);
    assert_eq!(effects(&base).await, names(0..8));
}

async fn whoever_lost_its_partition_acts_on_nothing_more<B: Base>() {
    let base = B::create().await;
    let (mut log, _) = Log::new(5);
    let thief = base.inbox();
    log.meanwhile = Some(Box::new(move || {
        tokio::spawn(async move {
            let consumer = thief.enlist(&name(), Duration::from_secs(60)).await.unwrap();
            thief.take(&consumer, &partition()).await.unwrap();
        })
    }));
    let consumer = Consumer::new(name(), base.inbox(), record::<B>).options(by_offset());
    consumer.run(log, pending()).await.unwrap();
    assert_eq!(effects(&base).await, names(0..2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_an_offset_is_refused_where_offsets_are_kept() {
    let base = Sqlite::create().await;
    let queue = Queue::default();
    queue.push(incoming("m-1", "{}"));
    let refused = consume(&base, &queue, by_offset(), Naming::default(), record::<Sqlite>).await;
    assert!(matches!(refused, Err(RunError::NoOffset { from }) if from == "orders"));
}
