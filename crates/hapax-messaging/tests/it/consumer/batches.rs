//! Several messages in one transaction.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use hapax_core::{Faults, Injected};
use hapax_messaging::consumer::{
    Consumer, Guard, HandlerError, Incoming, Message, Naming, Options, ProgressStorage,
};

use super::{
    base::Base,
    log::Log,
    on_every_base,
    queue::Queue,
    scene::{TxOf, consume, dead, effects, hurried, incoming, kept, name, record},
};

on_every_base! {
    messages_that_are_ready_share_a_commit,
    many_keys_in_few_transactions_keep_their_order_and_have_one_effect_each,
    a_poison_message_is_found_alone_and_costs_the_others_no_attempt,
    handlers_are_called_in_order_and_again_alone_after_one_has_failed,
    nothing_of_its_key_overtakes_a_message_that_comes_again,
    a_message_twice_in_a_batch_has_one_effect,
    what_was_acted_on_before_is_acknowledged_out_of_a_batch,
    a_broker_hears_of_every_message_of_a_batch,
    an_outage_leaves_a_whole_batch_to_come_again,
    messages_of_a_partition_move_its_offset_in_few_steps,
    a_message_that_fails_in_a_partition_holds_up_those_behind_it,
    under_a_guard_each_message_has_a_transaction_of_its_own,
}

fn together(batch: usize) -> Options {
    Options { batch, concurrency: 1, ..hurried() }
}

/// Counts how often this place is passed.
fn counting(place: &'static str) -> (Faults, Arc<AtomicU32>) {
    let passed = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&passed);
    let faults = Faults::new(move |at| {
        if at == place {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        Ok(())
    });
    (faults, passed)
}

fn queue_of(ids: &[&str]) -> Queue {
    let queue = Queue::default();
    for id in ids {
        queue.push(incoming(id, "{}"));
    }
    queue
}

/// A queue in which all messages have the same key.
fn queue_of_key(ids: &[&str]) -> Queue {
    let queue = Queue::default();
    for id in ids {
        queue.push(Incoming { key: Some("k".to_owned()), ..incoming(id, "{}") });
    }
    queue
}

/// A handler that fails this message so often.
fn failing<B: Base>(
    id: &'static str,
    times: u32,
) -> impl Fn(TxOf<B>, Arc<Message>) -> BoxedHandling + Send + Sync + 'static {
    let failed = Arc::new(AtomicU32::new(0));
    move |mut tx: TxOf<B>, message: Arc<Message>| {
        let failed = Arc::clone(&failed);
        Box::pin(async move {
            B::act(&mut tx, message.id.as_str()).await?;
            if message.id.as_str() == id && failed.fetch_add(1, Ordering::SeqCst) < times {
                return Err("not now".into());
            }
            Ok(())
        })
    }
}

type BoxedHandling =
    std::pin::Pin<Box<dyn Future<Output = Result<(), HandlerError>> + Send + 'static>>;

async fn messages_that_are_ready_share_a_commit<B: Base>() {
    let base = B::create().await;
    let ids = ["m-0", "m-1", "m-2", "m-3", "m-4", "m-5", "m-6", "m-7"];
    let queue = queue_of(&ids);
    let (faults, commits) = counting("consumer.after_leave");
    let consumer = Consumer::new(name(), base.inbox(), record::<B>).options(together(4));
    consumer.faults(faults).run(queue.clone(), pending()).await.unwrap();
    assert_eq!(effects(&base).await, ids);
    assert_eq!(queue.done(), ids);
    assert_eq!(commits.load(Ordering::SeqCst), 2);
}

async fn many_keys_in_few_transactions_keep_their_order_and_have_one_effect_each<B: Base>() {
    let base = B::create().await;
    let queue = Queue::deaf(1);
    for number in 0..60 {
        let key = Some(format!("k-{}", number % 5));
        queue.push(Incoming { key, ..incoming(&format!("m-{number:02}"), "{}") });
    }
    let options = Options { batch: 8, concurrency: 3, ..hurried() };
    consume(&base, &queue, options, Naming::default(), record::<B>).await.unwrap();
    let found = effects(&base).await;
    assert_eq!(found.len(), 60);
    assert_eq!(queue.done().len(), 60);
    for key in 0..5 {
        let of_key = |name: &&String| name[2..].parse::<u32>().unwrap() % 5 == key;
        let order: Vec<_> = found.iter().filter(of_key).collect();
        assert_eq!(order.len(), 12);
        assert!(order.is_sorted(), "{order:?}");
    }
}

async fn a_poison_message_is_found_alone_and_costs_the_others_no_attempt<B: Base>() {
    let base = B::create().await;
    let queue = queue_of(&["m-0", "m-1", "m-2", "m-3"]);
    let handler = failing::<B>("m-2", u32::MAX);
    consume(&base, &queue, together(4), Naming::default(), handler).await.unwrap();
    assert_eq!(effects(&base).await, ["m-0", "m-1", "m-3"]);
    assert_eq!(dead(&base).await, ["m-2 poison"]);
    let attempts = B::named("inbox_attempts");
    let attempts = format!("SELECT message_id || ' ' || attempts FROM {attempts}");
    assert_eq!(base.texts(&attempts).await, ["m-2 3"]);
    assert_eq!(queue.done().len(), 4);
}

async fn handlers_are_called_in_order_and_again_alone_after_one_has_failed<B: Base>() {
    let base = B::create().await;
    let queue = queue_of(&["a", "b", "c"]);
    let calls = Arc::new(Mutex::new(Vec::new()));
    let called = Arc::clone(&calls);
    let handler = move |mut tx: TxOf<B>, message: Arc<Message>| {
        called.lock().unwrap().push(message.id.as_str().to_owned());
        async move {
            B::act(&mut tx, message.id.as_str()).await?;
            match message.id.as_str() {
                "b" => Err(HandlerError::failed("there is no such address")),
                _ => Ok(()),
            }
        }
    };
    consume(&base, &queue, together(3), Naming::default(), handler).await.unwrap();
    assert_eq!(*calls.lock().unwrap(), ["a", "b", "a", "b", "c"]);
    assert_eq!(effects(&base).await, ["a", "c"]);
    assert_eq!(kept(&base).await, ["a done", "b failed", "c done"]);
}

async fn nothing_of_its_key_overtakes_a_message_that_comes_again<B: Base>() {
    let base = B::create().await;
    let ids = ["m-0", "m-1", "m-2", "m-3"];
    let queue = queue_of_key(&ids);
    let handler = failing::<B>("m-1", 2);
    consume(&base, &queue, together(4), Naming::default(), handler).await.unwrap();
    assert_eq!(effects(&base).await, ids);
    assert_eq!(queue.done(), ids);
}

async fn a_message_twice_in_a_batch_has_one_effect<B: Base>() {
    let base = B::create().await;
    let queue = queue_of(&["b-1", "b-2", "b-3"]);
    let naming = Naming::default().id(|_| Some("o-7".to_owned()));
    consume(&base, &queue, together(3), naming, record::<B>).await.unwrap();
    assert_eq!(effects(&base).await, ["o-7"]);
    assert_eq!(queue.done(), ["b-1", "b-2", "b-3"]);
}

async fn what_was_acted_on_before_is_acknowledged_out_of_a_batch<B: Base>() {
    let base = B::create().await;
    for ids in [["m-0", "m-1"], ["m-1", "m-2"]] {
        let queue = queue_of(&ids);
        consume(&base, &queue, together(4), Naming::default(), record::<B>).await.unwrap();
        assert_eq!(queue.done(), ids);
    }
    assert_eq!(effects(&base).await, ["m-0", "m-1", "m-2"]);
}

async fn a_broker_hears_of_every_message_of_a_batch<B: Base>() {
    let base = B::create().await;
    let queue = queue_of(&["m-0", "m-1", "m-2"]);
    let watched = queue.clone();
    let handler = move |tx: TxOf<B>, message: Arc<Message>| {
        let watched = watched.clone();
        async move {
            // One round is three signs of work, one for each message.
            while watched.heartbeats() < 6 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            record::<B>(tx, message).await
        }
    };
    let options = Options { heartbeat: Duration::from_millis(5), ..together(3) };
    consume(&base, &queue, options, Naming::default(), handler).await.unwrap();
    assert_eq!(queue.heartbeats() % 3, 0);
    assert_eq!(effects(&base).await, ["m-0", "m-1", "m-2"]);
}

async fn an_outage_leaves_a_whole_batch_to_come_again<B: Base>() {
    for place in ["consumer.before_enter", "consumer.after_enter", "consumer.after_leave"] {
        let base = B::create().await;
        let queue = queue_of(&["m-0", "m-1", "m-2"]);
        let failed = AtomicU32::new(0);
        let faults = Faults::new(move |at| {
            let fails = at == place && failed.fetch_add(1, Ordering::SeqCst) == 0;
            if fails { Err(Injected { place }) } else { Ok(()) }
        });
        let options = together(3);
        let pause = options.outage_pause;
        let consumer = Consumer::new(name(), base.inbox(), record::<B>).options(options);
        consumer.faults(faults).run(queue.clone(), pending()).await.unwrap();
        assert_eq!(effects(&base).await, ["m-0", "m-1", "m-2"], "{place}");
        assert_eq!(queue.put_back(), [pause; 3], "{place}");
        let attempts = format!("SELECT message_id FROM {}", B::named("inbox_attempts"));
        assert!(base.texts(&attempts).await.is_empty(), "{place}");
    }
}

async fn messages_of_a_partition_move_its_offset_in_few_steps<B: Base>() {
    let base = B::create().await;
    let (log, _) = Log::new(12);
    let (faults, commits) = counting("consumer.after_leave");
    let options = Options { progress: ProgressStorage::Offsets, batch: 4, ..hurried() };
    let consumer = Consumer::new(name(), base.inbox(), record::<B>).options(options.clone());
    consumer.faults(faults).run(log, pending()).await.unwrap();
    let names: Vec<_> = (0..12).map(|offset| format!("orders/0/{offset}")).collect();
    assert_eq!(effects(&base).await, names);
    let commits = commits.load(Ordering::SeqCst);
    assert!(commits < 12, "{commits} commits for 12 messages");
    let (log, seen) = Log::new(12);
    let consumer = Consumer::new(name(), base.inbox(), record::<B>).options(options);
    consumer.run(log, pending()).await.unwrap();
    assert_eq!(seen.started(), [Some(12)]);
    assert_eq!(effects(&base).await, names);
}

async fn a_message_that_fails_in_a_partition_holds_up_those_behind_it<B: Base>() {
    let base = B::create().await;
    let (log, _) = Log::new(9);
    let options = Options { progress: ProgressStorage::Offsets, batch: 4, ..hurried() };
    let handler = failing::<B>("orders/0/5", 2);
    let consumer = Consumer::new(name(), base.inbox(), handler).options(options);
    consumer.run(log, pending()).await.unwrap();
    let names: Vec<_> = (0..9).map(|offset| format!("orders/0/{offset}")).collect();
    assert_eq!(effects(&base).await, names);
}

async fn under_a_guard_each_message_has_a_transaction_of_its_own<B: Base>() {
    let base = B::create().await;
    let queue = queue_of_key(&["m-1", "m-2", "m-3"]);
    let (faults, commits) = counting("consumer.after_leave");
    let options = Options { guard: Some(Guard::Newest), ..together(4) };
    let naming =
        Naming::default().version(|incoming| incoming.broker_id.as_deref()?[2..].parse().ok());
    let consumer = Consumer::new(name(), base.inbox(), record::<B>).options(options);
    consumer.naming(naming).faults(faults).run(queue, pending()).await.unwrap();
    assert_eq!(effects(&base).await, ["m-1", "m-2", "m-3"]);
    assert_eq!(commits.load(Ordering::SeqCst), 3);
}
