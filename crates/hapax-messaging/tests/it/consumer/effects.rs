//! One effect for each message.

use std::{
    collections::HashMap,
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use hapax_core::{Faults, Injected};
use hapax_messaging::consumer::{
    Consumer, HandlerError, Incoming, Message, Naming, Options, RunError,
};
use tokio::sync::Notify;

use super::{
    base::Base,
    on_every_base,
    queue::Queue,
    scene::{TxOf, consume, dead, effects, hurried, incoming, kept, name, record},
};

on_every_base! {
    every_message_has_one_effect_though_the_broker_hears_nothing_twice,
    a_message_sent_twice_under_one_name_has_one_effect,
    what_fails_for_good_is_acknowledged_and_not_run_again,
    what_fails_once_is_rolled_back_and_comes_again,
    messages_of_one_key_are_acted_on_one_after_the_other,
    a_broker_hears_that_a_long_message_is_still_worked_on,
    an_outage_of_the_database_costs_no_attempt,
    a_commit_without_an_answer_is_found_when_the_message_comes_again,
    what_was_begun_is_finished_before_it_stops,
}

async fn every_message_has_one_effect_though_the_broker_hears_nothing_twice<B: Base>() {
    let base = B::create().await;
    let queue = Queue::deaf(2);
    for number in 0..20 {
        queue.push(incoming(&format!("m-{number:02}"), "{}"));
    }
    consume(&base, &queue, hurried(), Naming::default(), record::<B>).await.unwrap();
    let mut found = effects(&base).await;
    found.sort();
    let expected: Vec<_> = (0..20).map(|number| format!("m-{number:02}")).collect();
    assert_eq!(found, expected);
    assert_eq!(queue.done().len(), 20);
}

async fn a_message_sent_twice_under_one_name_has_one_effect<B: Base>() {
    let base = B::create().await;
    let queue = Queue::default();
    for broker_id in ["b-1", "b-2"] {
        queue.push(incoming(broker_id, "{\"order\":\"o-7\"}"));
    }
    let order = |incoming: &Incoming| {
        let text = std::str::from_utf8(&incoming.payload).ok()?;
        Some(text.split('"').nth(3)?.to_owned())
    };
    consume(&base, &queue, hurried(), Naming::default().id(order), record::<B>).await.unwrap();
    assert_eq!(effects(&base).await, ["o-7"]);
    assert_eq!(queue.done().len(), 2);
}

async fn what_fails_for_good_is_acknowledged_and_not_run_again<B: Base>() {
    let base = B::create().await;
    let queue = Queue::deaf(1);
    queue.push(incoming("m-1", "{}"));
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let handler = move |mut tx: TxOf<B>, _: Arc<Message>| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move {
            B::act(&mut tx, "never").await?;
            Err(HandlerError::failed("there is no such address"))
        }
    };
    consume(&base, &queue, hurried(), Naming::default(), handler).await.unwrap();
    assert!(effects(&base).await.is_empty());
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(kept(&base).await, ["m-1 failed"]);
    assert_eq!(queue.done(), ["m-1"]);
    assert!(dead(&base).await.is_empty());
}

async fn what_fails_once_is_rolled_back_and_comes_again<B: Base>() {
    let base = B::create().await;
    let queue = Queue::default();
    queue.push(incoming("m-1", "{}"));
    let calls = Arc::new(AtomicU32::new(0));
    let handler = move |mut tx: TxOf<B>, _: Arc<Message>| {
        let call = calls.fetch_add(1, Ordering::SeqCst);
        async move {
            B::act(&mut tx, &format!("call {call}")).await?;
            if call == 0 { Err("the printer is on fire".into()) } else { Ok(()) }
        }
    };
    consume(&base, &queue, hurried(), Naming::default(), handler).await.unwrap();
    assert_eq!(effects(&base).await, ["call 1"]);
    assert_eq!(queue.put_back(), [Duration::from_millis(5)]);
}

async fn messages_of_one_key_are_acted_on_one_after_the_other<B: Base>() {
    let base = B::create().await;
    let queue = Queue::default();
    for number in 0..24 {
        let key = Some(format!("k-{}", number % 3));
        queue.push(Incoming { key, ..incoming(&format!("m-{number:02}"), "{}") });
    }
    let busy = Arc::new(Mutex::new(HashMap::<String, u32>::new()));
    let handler = move |mut tx: TxOf<B>, message: Arc<Message>| {
        let busy = Arc::clone(&busy);
        async move {
            let key = message.key.clone().unwrap();
            let now = |change: i64| {
                let mut busy = busy.lock().unwrap();
                let count = busy.entry(key.clone()).or_default();
                *count = u32::try_from(i64::from(*count) + change).unwrap();
                *count
            };
            assert_eq!(now(1), 1, "another message of {key} is being acted on");
            tokio::task::yield_now().await;
            B::act(&mut tx, message.id.as_str()).await?;
            now(-1);
            Ok(())
        }
    };
    consume(&base, &queue, hurried(), Naming::default(), handler).await.unwrap();
    let found = effects(&base).await;
    for key in 0..3 {
        let of_key = |name: &&String| name[2..].parse::<u32>().unwrap() % 3 == key;
        let order: Vec<_> = found.iter().filter(of_key).collect();
        assert_eq!(order.len(), 8);
        assert!(order.is_sorted(), "{order:?}");
    }
}

async fn a_broker_hears_that_a_long_message_is_still_worked_on<B: Base>() {
    let base = B::create().await;
    let queue = Queue::default();
    queue.push(incoming("m-1", "{}"));
    let watched = queue.clone();
    let handler = move |mut tx: TxOf<B>, _: Arc<Message>| {
        let watched = watched.clone();
        async move {
            while watched.heartbeats() < 2 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            B::act(&mut tx, "m-1").await
        }
    };
    let options = Options { heartbeat: Duration::from_millis(5), ..hurried() };
    consume(&base, &queue, options, Naming::default(), handler).await.unwrap();
    assert_eq!(effects(&base).await, ["m-1"]);
}

/// Fails so often at this place, and then no more.
fn failing(place: &'static str, times: u32) -> Faults {
    let failed = AtomicU32::new(0);
    Faults::new(move |at| {
        let fails = at == place && failed.fetch_add(1, Ordering::SeqCst) < times;
        if fails { Err(Injected { place }) } else { Ok(()) }
    })
}

async fn an_outage_of_the_database_costs_no_attempt<B: Base>() {
    let base = B::create().await;
    let queue = Queue::default();
    queue.push(incoming("m-1", "{}"));
    let consumer = Consumer::new(name(), base.inbox(), record::<B>).options(hurried());
    let consumer = consumer.faults(failing("consumer.before_enter", 9));
    consumer.run(queue.clone(), pending()).await.unwrap();
    assert_eq!(effects(&base).await, ["m-1"]);
    assert_eq!(queue.put_back(), [hurried().outage_pause; 9]);
}

async fn a_commit_without_an_answer_is_found_when_the_message_comes_again<B: Base>() {
    let base = B::create().await;
    let queue = Queue::default();
    queue.push(incoming("m-1", "{}"));
    let consumer = Consumer::new(name(), base.inbox(), record::<B>).options(hurried());
    let consumer = consumer.faults(failing("consumer.after_leave", 1));
    consumer.run(queue.clone(), pending()).await.unwrap();
    assert_eq!(effects(&base).await, ["m-1"]);
    assert_eq!(queue.put_back().len(), 1);
    assert_eq!(queue.done(), ["m-1"]);
}

async fn what_was_begun_is_finished_before_it_stops<B: Base>() {
    let base = B::create().await;
    let queue = Queue::default();
    for id in ["m-1", "m-2"] {
        queue.push(Incoming { key: Some("k".to_owned()), ..incoming(id, "{}") });
    }
    let (begun, stop) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begins, stopping) = (Arc::clone(&begun), Arc::clone(&stop));
    let handler = move |tx: TxOf<B>, message: Arc<Message>| {
        let (begins, stopping) = (Arc::clone(&begins), Arc::clone(&stopping));
        async move {
            begins.notify_one();
            stopping.notified().await;
            record::<B>(tx, message).await
        }
    };
    let consumer = Consumer::new(name(), base.inbox(), handler).options(hurried());
    let until = async {
        begun.notified().await;
        stop.notify_one();
    };
    consumer.run(queue.clone(), until).await.unwrap();
    assert_eq!(effects(&base).await, ["m-1"]);
    assert_eq!(queue.done(), ["m-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retention_shorter_than_the_brokers_redelivery_is_refused() {
    type B = super::base::Sqlite;
    let base = B::create().await;
    let day = Duration::from_secs(86_400);
    let queue = Queue::redelivering_for(8 * day);
    let refused = consume(&base, &queue, hurried(), Naming::default(), record::<B>).await;
    let refused = refused.unwrap_err();
    assert!(
        matches!(refused, RunError::RetentionTooShort { retention, redelivery }
            if retention == 7 * day && redelivery == 8 * day),
        "{refused:?}"
    );
    let words = refused.to_string();
    assert!(words.contains("604800s") && words.contains("691200s"), "{words}");
}
