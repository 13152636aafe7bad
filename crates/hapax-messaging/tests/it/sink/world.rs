//! What the suite has to know about a place, and what it sends there.

use std::{collections::BTreeMap, time::Duration};

use hapax_core::{
    Header, Timestamp,
    outbox::{EventId, Lane, Stored},
};
use hapax_messaging::sink::{Sink, Verdict};
use tokio::time::{Instant, sleep};

/// A place that events are sent to, read back by other means than ours.
pub(crate) trait World: Send + Sync + Sized {
    type Sink: Sink;

    /// Largest payload that it takes, in bytes.
    const PAYLOAD_BYTES_MAX: usize;

    /// An empty place of its own on the server all tests share.
    fn open() -> impl Future<Output = Self> + Send;

    /// A topic whose events it takes.
    fn topic(&self) -> String;

    /// A sink to it, whose events come from `/suite`.
    fn sink(&self) -> impl Future<Output = Self::Sink> + Send;

    /// All that is there and was not told before: each key in the order of its arrival.
    fn arrived(&mut self) -> impl Future<Output = Vec<Arrived>> + Send;
}

/// A place that refuses some events.
pub(crate) trait Choosy: World {
    /// Makes an event of the same topic and key that is refused.
    fn unwelcome(&self, event: Stored) -> Stored;
}

/// A place on a server of its own, which can fail.
pub(crate) trait Breakable: World {
    /// The longest a call may take while nobody answers.
    const PATIENCE: Duration;

    /// An empty place on a server of its own.
    fn alone() -> impl Future<Output = Self> + Send;

    /// Ends the server without a warning.
    fn kill(&mut self) -> impl Future<Output = ()> + Send;

    /// Starts it again, with what it had.
    fn revive(&mut self) -> impl Future<Output = ()> + Send;

    /// Freezes it: connections stay open, and nobody answers.
    fn freeze(&mut self);

    /// Lets it go on.
    fn thaw(&mut self);
}

/// An event as it was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arrived {
    pub(crate) id: String,
    pub(crate) specversion: String,
    pub(crate) source: String,
    pub(crate) kind: String,
    pub(crate) subject: String,
    pub(crate) time: String,
    pub(crate) content_type: String,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) payload: Vec<u8>,
}

impl Arrived {
    /// Finds the attributes among these headers, by how the place calls them; the rest are the
    /// event's own.
    pub(crate) fn from_headers(
        mut headers: BTreeMap<String, String>,
        prefix: &str,
        content_type: String,
        payload: Vec<u8>,
    ) -> Self {
        let mut take = |name: &str| {
            headers.remove(&format!("{prefix}{name}")).unwrap_or_else(|| panic!("no {name}"))
        };
        let [id, specversion, source, kind, subject, time] =
            ["id", "specversion", "source", "type", "subject", "time"].map(&mut take);
        Self { id, specversion, source, kind, subject, time, content_type, headers, payload }
    }
}

/// What should arrive of an event.
pub(crate) fn expected(event: &Stored) -> Arrived {
    let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
    let headers = event.headers.iter();
    Arrived {
        id: event.id.to_string(),
        specversion: "1.0".to_owned(),
        source: "/suite".to_owned(),
        kind: event.topic.clone(),
        subject: event.key.clone(),
        time: event.at.to_string(),
        content_type: event.content_type.clone(),
        headers: headers.map(|header| (header.name.clone(), text(&header.value))).collect(),
        payload: event.payload.to_vec(),
    }
}

/// An event with an id that no other has.
pub(crate) fn event(topic: &str, key: &str, payload: impl Into<Vec<u8>>) -> Stored {
    Stored {
        position: 1,
        lane: Lane::of(topic, key),
        id: EventId::from_bytes(fastrand::u128(..).to_be_bytes()),
        at: Timestamp::from_micros(1_790_000_000_123_456),
        topic: topic.to_owned(),
        key: key.to_owned(),
        content_type: "application/json".to_owned(),
        headers: Vec::new(),
        payload: payload.into().into(),
    }
}

pub(crate) fn with_header(mut event: Stored, name: &str, value: &str) -> Stored {
    event.headers.push(Header { name: name.to_owned(), value: value.to_owned().into() });
    event
}

/// `count` events for each of `keys` keys, the keys taking turns.
pub(crate) fn turns(topic: &str, keys: usize, count: usize) -> Vec<Stored> {
    let of = |turn: usize, key: usize| event(topic, &format!("key-{key}"), format!("{turn}"));
    (0..count).flat_map(|turn| (0..keys).map(move |key| of(turn, key))).collect()
}

/// Hands over what was not taken again and again, as a relay does, until everything was.
pub(crate) async fn insist(sink: &impl Sink, mut events: Vec<Stored>) {
    const LIMIT: Duration = Duration::from_secs(120);
    const PAUSE: Duration = Duration::from_millis(50);
    let begun = Instant::now();
    while !events.is_empty() {
        assert!(begun.elapsed() < LIMIT, "{} events were not taken in time", events.len());
        match sink.send(&events).await {
            Ok(verdicts) => {
                assert_eq!(verdicts.len(), events.len(), "every event has a verdict");
                let mut verdicts = verdicts.into_iter();
                events.retain(|event| match verdicts.next().unwrap() {
                    Verdict::Taken => false,
                    Verdict::Missed(_) | Verdict::Behind => true,
                    Verdict::Refused(why) => panic!("{} was refused: {why}", event.id),
                });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

/// The ids of each key, in the order they were first seen, and how many were seen again.
pub(crate) fn first_seen(arrived: &[Arrived]) -> (BTreeMap<String, Vec<String>>, usize) {
    let mut seen: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut again = 0;
    for event in arrived {
        let ids = seen.entry(event.subject.clone()).or_default();
        if ids.contains(&event.id) {
            again += 1;
        } else {
            ids.push(event.id.clone());
        }
    }
    (seen, again)
}

/// The ids of each key, in the order given.
pub(crate) fn sent(events: &[Stored]) -> BTreeMap<String, Vec<String>> {
    let mut sent: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for event in events {
        sent.entry(event.key.clone()).or_default().push(event.id.to_string());
    }
    sent
}
