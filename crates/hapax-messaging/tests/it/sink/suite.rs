//! What every sink does.

use std::time::Duration;

use hapax_messaging::sink::{Sink, Verdict};
use tokio::{
    sync::watch,
    time::{Instant, timeout},
};

use super::world::{
    Breakable, Choosy, World, event, expected, first_seen, insist, sent, turns, with_header,
};

/// For every sink.
macro_rules! sink_conformance {
    ($world:ty) => {
        $crate::sink::suite::cases! { $world:
            an_event_arrives_as_it_was_written,
            the_largest_payload_arrives,
            a_header_cannot_pass_for_an_attribute,
            nothing_is_sent_for_no_events,
            a_key_stays_in_order_within_calls_and_over_them,
            calls_at_the_same_time_all_arrive,
        }
    };
}

/// For sinks whose place refuses some events.
macro_rules! sink_refusals {
    ($world:ty) => {
        $crate::sink::suite::cases! { $world:
            a_refused_event_holds_its_key_and_nobody_else,
        }
    };
}

/// For sinks whose place drops an id that it has seen.
macro_rules! sink_deduplication {
    ($world:ty) => {
        $crate::sink::suite::cases! { $world:
            an_event_sent_again_is_taken_and_arrives_once,
        }
    };
}

/// For sinks whose place sees every copy.
macro_rules! sink_copies {
    ($world:ty) => {
        $crate::sink::suite::cases! { $world:
            an_event_sent_again_arrives_under_the_same_id,
        }
    };
}

/// For sinks whose place can fail.
macro_rules! sink_outages {
    ($world:ty) => {
        $crate::sink::suite::cases! { $world:
            an_outage_is_told_in_time_and_ends_by_itself,
            nothing_is_lost_or_swapped_when_the_server_is_killed,
        }
    };
}

macro_rules! cases {
    ($world:ty: $($case:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                $crate::sink::suite::$case::<$world>().await;
            }
        )*
    };
}

#[allow(unused_imports, reason = "which of them are used depends on the features")]
pub(crate) use {
    cases, sink_conformance, sink_copies, sink_deduplication, sink_outages, sink_refusals,
};

pub(crate) async fn an_event_arrives_as_it_was_written<W: World>() {
    let mut world = W::open().await;
    let (sink, topic) = (world.sink().await, world.topic());
    let mut binary = event(&topic, "binary", (0..=255_u8).collect::<Vec<_>>());
    binary.content_type = "application/octet-stream".to_owned();
    let mut text = event(&topic, "text", "sch\u{f6}n \u{2713}\nzwei");
    text.content_type = "text/plain; charset=utf-8".to_owned();
    let events = [
        event(&topic, "plain", r#"{"total":1.10,"big":12345678901234567890}"#),
        event(&topic, "k\u{e4}se \u{1f9c0} 100% \"gut\"", "{\"a\": [1,\t2]}"),
        event(&topic, "empty", ""),
        event(&topic, "not-json", "{"),
        with_header(with_header(event(&topic, "headed", "1"), "trace", "a=b; c"), "x-empty", ""),
        with_header(event(&topic, "unicode", "1"), "greeting", "gr\u{fc}\u{df} \u{2713}"),
        binary,
        text,
    ];
    assert_eq!(sink.send(&events).await.unwrap(), vec![Verdict::Taken; events.len()]);
    let mut arrived = world.arrived().await;
    let mut expected: Vec<_> = events.iter().map(expected).collect();
    arrived.sort_by(|a, b| a.subject.cmp(&b.subject));
    expected.sort_by(|a, b| a.subject.cmp(&b.subject));
    assert_eq!(arrived, expected);
}

pub(crate) async fn the_largest_payload_arrives<W: World>() {
    let mut world = W::open().await;
    let text = "\u{e9}".repeat((W::PAYLOAD_BYTES_MAX - 2) / 2);
    let large = event(&world.topic(), "large", format!("\"{text}\""));
    assert_eq!(
        world.sink().await.send(std::slice::from_ref(&large)).await.unwrap(),
        [Verdict::Taken]
    );
    assert!(world.arrived().await == [expected(&large)], "the payload arrived as it was sent");
}

pub(crate) async fn a_header_cannot_pass_for_an_attribute<W: World>() {
    let mut world = W::open().await;
    let honest = with_header(event(&world.topic(), "key", "1"), "mine", "kept");
    let mut posing = honest.clone();
    for name in ["ce-id", "CE-ID", "ce_id", "Ce_Source", "content-type", "Content-Type"] {
        posing = with_header(posing, name, "forged");
    }
    assert_eq!(world.sink().await.send(&[posing]).await.unwrap(), [Verdict::Taken]);
    assert_eq!(world.arrived().await, [expected(&honest)]);
}

pub(crate) async fn nothing_is_sent_for_no_events<W: World>() {
    let mut world = W::open().await;
    assert_eq!(world.sink().await.send(&[]).await.unwrap(), []);
    assert_eq!(world.arrived().await, []);
}

pub(crate) async fn a_key_stays_in_order_within_calls_and_over_them<W: World>() {
    let mut world = W::open().await;
    let (sink, topic) = (world.sink().await, world.topic());
    let events = turns(&topic, 7, 20);
    for call in events.chunks(33) {
        assert_eq!(sink.send(call).await.unwrap(), vec![Verdict::Taken; call.len()]);
    }
    assert_eq!(first_seen(&world.arrived().await), (sent(&events), 0));
}

pub(crate) async fn calls_at_the_same_time_all_arrive<W: World>() {
    let mut world = W::open().await;
    let (sink, topic) = (world.sink().await, world.topic());
    let events = turns(&topic, 4, 10);
    let of =
        |key: &str| -> Vec<_> { events.iter().filter(|event| event.key == key).cloned().collect() };
    let calls = ["key-0", "key-1", "key-2", "key-3"].map(of);
    let [a, b, c, d] = &calls;
    let done = tokio::join!(sink.send(a), sink.send(b), sink.send(c), sink.send(d));
    for verdicts in [done.0, done.1, done.2, done.3] {
        assert_eq!(verdicts.unwrap(), vec![Verdict::Taken; 10]);
    }
    assert_eq!(first_seen(&world.arrived().await), (sent(&events), 0));
}

pub(crate) async fn a_refused_event_holds_its_key_and_nobody_else<W: Choosy>() {
    let mut world = W::open().await;
    let (sink, topic) = (world.sink().await, world.topic());
    let mut events = turns(&topic, 3, 4);
    // The second of the second key.
    events[4] = world.unwelcome(events[4].clone());
    let verdicts = sink.send(&events).await.unwrap();
    assert_eq!(verdicts.len(), events.len());
    for (at, verdict) in verdicts.iter().enumerate() {
        match at {
            4 => {
                assert!(matches!(verdict, Verdict::Refused(why) if !why.is_empty()), "{verdict:?}")
            }
            7 | 10 => assert_eq!(*verdict, Verdict::Behind),
            _ => assert_eq!(*verdict, Verdict::Taken, "of the event at {at}"),
        }
    }
    let mut welcome = events.clone();
    for at in [10, 7, 4] {
        welcome.remove(at);
    }
    assert_eq!(first_seen(&world.arrived().await).0, sent(&welcome));
    // What was behind goes on once the refused one is out of its way.
    let behind = [events[7].clone(), events[10].clone()];
    assert_eq!(sink.send(&behind).await.unwrap(), [Verdict::Taken, Verdict::Taken]);
    assert_eq!(first_seen(&world.arrived().await).0, sent(&behind));
}

pub(crate) async fn an_event_sent_again_is_taken_and_arrives_once<W: World>() {
    let mut world = W::open().await;
    let (sink, events) = (world.sink().await, turns(&world.topic(), 3, 3));
    for _ in 0..3 {
        assert_eq!(sink.send(&events).await.unwrap(), vec![Verdict::Taken; events.len()]);
    }
    assert_eq!(first_seen(&world.arrived().await), (sent(&events), 0));
}

pub(crate) async fn an_event_sent_again_arrives_under_the_same_id<W: World>() {
    let mut world = W::open().await;
    let (sink, events) = (world.sink().await, turns(&world.topic(), 3, 3));
    for _ in 0..2 {
        assert_eq!(sink.send(&events).await.unwrap(), vec![Verdict::Taken; events.len()]);
    }
    assert_eq!(first_seen(&world.arrived().await), (sent(&events), events.len()));
}

pub(crate) async fn an_outage_is_told_in_time_and_ends_by_itself<W: Breakable>() {
    let mut world = W::alone().await;
    let (sink, topic) = (world.sink().await, world.topic());
    let [before, during, frozen, after] = [0, 1, 2, 3].map(|_| turns(&topic, 2, 2));
    insist(&sink, before.clone()).await;

    world.kill().await;
    let begun = Instant::now();
    let down = timeout(W::PATIENCE, sink.send(&during)).await;
    let down = down.expect("a call ends in time while the server is down");
    down.expect_err("nothing is taken while the server is down");
    world.revive().await;
    insist(&sink, during.clone()).await;

    world.freeze();
    let silent = timeout(W::PATIENCE, sink.send(&frozen)).await;
    world.thaw();
    let silent = silent.expect("a call ends in time while the server is frozen");
    let taken = silent.is_ok_and(|verdicts| verdicts.contains(&Verdict::Taken));
    assert!(!taken, "nothing is taken while the server is frozen");
    insist(&sink, frozen.clone()).await;

    insist(&sink, after.clone()).await;
    let all = [before, during, frozen, after].concat();
    assert_eq!(first_seen(&world.arrived().await).0, sent(&all));
    assert!(begun.elapsed() < Duration::from_secs(120), "it was an outage, not an end");
}

pub(crate) async fn nothing_is_lost_or_swapped_when_the_server_is_killed<W: Breakable>() {
    const CALLS: usize = 60;
    let mut world = W::alone().await;
    let (sink, topic) = (world.sink().await, world.topic());
    let calls: Vec<_> = (0..CALLS).map(|_| turns(&topic, 5, 10)).collect();
    let events = calls.concat();
    let (progress, mut reached) = watch::channel(0);
    let sending = tokio::spawn(async move {
        for (done, call) in calls.into_iter().enumerate() {
            progress.send_replace(done);
            insist(&sink, call).await;
        }
    });
    for at in [CALLS / 4, CALLS / 2] {
        reached.wait_for(|done| *done >= at).await.unwrap();
        world.kill().await;
        world.revive().await;
    }
    sending.await.unwrap();
    assert_eq!(first_seen(&world.arrived().await).0, sent(&events));
}
