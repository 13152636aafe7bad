//! What is Kafka's own.

use std::{collections::BTreeMap, error::Error, time::Duration};

use hapax_messaging::sink::{InvalidKafka, Kafka, KafkaOptions, Sink, Verdict};

use super::cluster::Topic;
use crate::sink::world::{event, first_seen, insist, sent, turns};

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_kafka_cannot_have_is_refused() {
    let mut topic = Topic::on_shared(&[]).await;
    let sink = topic.sink(KafkaOptions::default());
    let good = event(&topic.name, "key", "1");
    let bad = ["", ".", "..", "a b", "k\u{e4}se", &"x".repeat(250)];
    let mut events: Vec<_> = bad.iter().map(|topic| event(topic, "key", "1")).collect();
    events.push(good.clone());
    let verdicts = sink.send(&events).await.unwrap();
    for (verdict, topic) in verdicts.iter().zip(bad) {
        assert!(matches!(verdict, Verdict::Refused(why) if why.contains(topic)), "{verdict:?}");
    }
    assert_eq!(verdicts.last(), Some(&Verdict::Taken));
    assert_eq!(first_seen(&topic.arrived().await).0, sent(&[good]));
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_have_the_prefix_they_were_given() {
    let mut topic = Topic::on_shared(&[]).await;
    let (prefix, rest) = topic.name.split_once('-').unwrap();
    let (topic_prefix, rest) = (format!("{prefix}-"), rest.to_owned());
    let sink = topic.sink(KafkaOptions { topic_prefix, ..KafkaOptions::default() });
    let events = turns(&rest, 2, 2);
    assert_eq!(sink.send(&events).await.unwrap(), vec![Verdict::Taken; 4]);
    let arrived = topic.arrived().await;
    assert_eq!(first_seen(&arrived).0, sent(&events));
    assert_eq!(arrived[0].kind, rest, "the type of the event is its own topic");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_refused_events_hold_nobody_else() {
    let mut topic = Topic::on_shared(&[("max.message.bytes", "20000")]).await;
    let sink = topic.sink(KafkaOptions::default());
    let good = turns(&topic.name, 20, 2);
    let large = (0..10).map(|key| event(&topic.name, &format!("large-{key}"), vec![b' '; 50_000]));
    let events: Vec<_> = good.iter().cloned().chain(large).collect();
    let verdicts = sink.send(&events).await.unwrap();
    assert_eq!(verdicts[..good.len()], vec![Verdict::Taken; good.len()]);
    for verdict in &verdicts[good.len()..] {
        assert!(matches!(verdict, Verdict::Refused(_)), "{verdict:?}");
    }
    assert_eq!(first_seen(&topic.arrived().await).0, sent(&good));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_leaves_nothing_behind_that_would_come_later() {
    let mut topic = Topic::on_shared(&[]).await;
    // It waits for so long before it sends that the call is dropped first.
    let settings = BTreeMap::from([("linger.ms".to_owned(), "3000".to_owned())]);
    let sink = topic.sink(KafkaOptions { settings, ..KafkaOptions::default() });
    let (dropped, next) = (turns(&topic.name, 2, 2), turns(&topic.name, 2, 2));
    let call = tokio::time::timeout(Duration::from_millis(300), sink.send(&dropped));
    call.await.expect_err("it is still waiting");
    insist(&sink, next.clone()).await;
    assert_eq!(first_seen(&topic.arrived().await), (sent(&next), 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_sink_with_the_same_transactional_id_shuts_out_the_first() {
    let mut topic = Topic::on_shared(&[]).await;
    let options = KafkaOptions {
        transactional_id: Some(format!("id-of-{}", topic.name)),
        ..KafkaOptions::default()
    };
    let (first, second) = (topic.sink(options.clone()), topic.sink(options));
    let [a, b, c] = [0, 1, 2].map(|_| turns(&topic.name, 1, 1));
    assert_eq!(first.send(&a).await.unwrap(), [Verdict::Taken]);
    assert_eq!(second.send(&b).await.unwrap(), [Verdict::Taken]);
    let outage = first.send(&c).await.unwrap_err();
    let cause = outage.source().unwrap().to_string();
    assert!(cause.contains("transactional id"), "{cause}");
    insist(&first, c.clone()).await;
    assert_eq!(first_seen(&topic.arrived().await).0, sent(&[a, b, c].concat()));
}

#[tokio::test(flavor = "multi_thread")]
async fn brokers_that_are_not_there_are_an_outage_at_once() {
    let options = KafkaOptions { call_timeout: Duration::from_secs(20), ..KafkaOptions::default() };
    let sink = Kafka::new("127.0.0.1:1", options).unwrap();
    let events = turns("orders", 1, 1);
    let call = tokio::time::timeout(Duration::from_secs(10), sink.send(&events));
    let outage = call.await.expect("before the call's own time is over").unwrap_err();
    assert!(!outage.needs_somebody());
}

#[test]
fn settings_that_order_rests_on_are_not_for_users() {
    let with = |name: &str, value: &str| {
        let settings = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        Kafka::new("127.0.0.1:1", KafkaOptions { settings, ..KafkaOptions::default() })
    };
    for name in ["enable.idempotence", "acks", "message.timeout.ms", "transactional.id"] {
        let refused = with(name, "1");
        assert!(
            matches!(refused, Err(InvalidKafka::Ours { name: told }) if told == name),
            "{name}"
        );
    }
    assert!(matches!(with("no.such.setting", "1"), Err(InvalidKafka::Settings(_))));
    assert!(with("compression.type", "zstd").is_ok());
}
