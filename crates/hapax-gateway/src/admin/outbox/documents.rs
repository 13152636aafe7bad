//! What is told about the outbox. Instants are the store's, in UTC.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hapax_core::{
    Timestamp,
    outbox::{Destination, Lag, LaneLag, Parked, Position},
};
use serde::{Deserialize, Serialize};

/// Every destination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DestinationsDocument {
    /// In order of name.
    pub destinations: Vec<DestinationRow>,
}

/// A destination at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DestinationRow {
    /// Its name.
    pub name: String,
    /// The topics it wants.
    pub topics: Vec<String>,
    /// Whether sending was stopped.
    pub paused: bool,
    /// How many relays serve it.
    pub relays: usize,
    /// How many events are not yet sent.
    pub behind: u64,
    /// How long the oldest of them has waited.
    pub behind_seconds: f64,
    /// How many events are put aside.
    pub parked: u64,
}

impl DestinationRow {
    /// The row of a destination.
    pub fn of(destination: &Destination, lag: &Lag) -> Self {
        Self {
            name: destination.name().to_owned(),
            topics: destination.topics().patterns().to_vec(),
            paused: lag.paused,
            relays: lag.relays,
            behind: lag.events(),
            behind_seconds: lag.age().as_secs_f64(),
            parked: lag.parked,
        }
    }
}

/// How far a destination is behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DestinationLag {
    /// Its name.
    pub destination: String,
    /// When it was looked at.
    pub now: String,
    /// Whether sending was stopped.
    pub paused: bool,
    /// How many relays serve it.
    pub relays: usize,
    /// How many events are not yet sent.
    pub behind: u64,
    /// How long the oldest of them has waited.
    pub behind_seconds: f64,
    /// How many events are put aside.
    pub parked: u64,
    /// The lanes somebody serves or something waits in.
    pub lanes: Vec<LaneDocument>,
}

/// How far a lane is behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneDocument {
    /// Its number.
    pub lane: i16,
    /// The relay that has it, if one is alive.
    pub owner: Option<String>,
    /// Up to which position everything is sent, parked or known never to come.
    pub low: Position,
    /// How many events wait in it.
    pub behind: u64,
    /// When the oldest of them was written.
    pub oldest: Option<String>,
}

impl DestinationLag {
    /// The document of a destination.
    pub fn of(destination: &str, lag: &Lag) -> Self {
        let worth_showing = |lane: &&LaneLag| lane.events > 0 || lane.owner.is_some();
        let lanes = lag.lanes.iter().filter(worth_showing).map(|lane| LaneDocument {
            lane: lane.lane.number(),
            owner: lane.owner.map(|owner| format!("{:016x}", owner.0)),
            low: lane.low,
            behind: lane.events,
            oldest: lane.oldest.map(|at| at.to_string()),
        });
        Self {
            destination: destination.to_owned(),
            now: lag.now.to_string(),
            paused: lag.paused,
            relays: lag.relays,
            behind: lag.events(),
            behind_seconds: lag.age().as_secs_f64(),
            parked: lag.parked,
            lanes: lanes.collect(),
        }
    }
}

/// A page of events that were put aside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParkedEvents {
    /// Whose they are.
    pub destination: String,
    /// The events, in order of position.
    pub parked: Vec<ParkedEvent>,
    /// Where the next page starts, if there is one.
    pub next: Option<Position>,
}

/// An event that was put aside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParkedEvent {
    /// Where it stands in the log.
    pub position: Position,
    /// Its id.
    pub id: String,
    /// Its topic.
    pub topic: String,
    /// Its key.
    pub key: String,
    /// How often it was tried.
    pub attempts: u32,
    /// When it was put aside.
    pub parked_at: String,
    /// How long ago that was.
    pub parked_seconds: f64,
    /// Whether later events of its key wait behind it.
    pub holds_key: bool,
    /// Whether it is to be sent again.
    pub replaying: bool,
    /// Why it was put aside.
    pub reason: String,
    /// What its payload is.
    pub content_type: String,
    /// Whether it is encrypted, and whoever tells it cannot decrypt it.
    #[serde(default)]
    pub encrypted: bool,
    /// The payload, if it was asked for and is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// The payload, if it was asked for and is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
}

impl ParkedEvent {
    /// The document of a parked event, with its payload or without.
    pub fn of(parked: &Parked, now: Timestamp, with_payload: bool) -> Self {
        let event = &parked.event;
        let encrypted = event.is_sealed();
        let bytes = (with_payload && !encrypted).then_some(&event.payload);
        let text = bytes.and_then(|bytes| std::str::from_utf8(bytes).ok());
        let opaque = bytes.filter(|_| text.is_none());
        Self {
            position: event.position,
            id: event.id.to_string(),
            topic: event.topic.clone(),
            key: event.key.clone(),
            attempts: parked.attempts,
            parked_at: parked.parked_at.to_string(),
            parked_seconds: now.after(parked.parked_at).as_secs_f64(),
            holds_key: parked.holds_key,
            replaying: parked.replaying,
            reason: parked.reason.clone(),
            content_type: event.content_type.clone(),
            encrypted,
            payload: text.map(str::to_owned),
            payload_base64: opaque.map(|bytes| BASE64_STANDARD.encode(bytes)),
        }
    }
}

/// Has parked events sent again: one, those of a key, or all of them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayDocument {
    /// Who wants it; left out by somebody whom a provider signed in.
    #[serde(default)]
    pub who: String,
    /// Why.
    pub why: String,
    /// Whether only to say what would be sent.
    #[serde(default)]
    pub dry_run: bool,
    /// The event at this position.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// Those of a key of this topic; always together with `key`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// Those of this key; always together with `topic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// All of them.
    #[serde(default)]
    pub all: bool,
}

/// Stops sending to a destination, or goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PauseDocument {
    /// Who wants it; left out by somebody whom a provider signed in.
    #[serde(default)]
    pub who: String,
    /// Why.
    pub why: String,
}

/// What a change would do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutboxForecast {
    /// To which destination.
    pub destination: String,
    /// What, in words.
    pub would: String,
    /// The events it would be done to, in order.
    pub events: Vec<ParkedEvent>,
}

/// What was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboxChange {
    /// To which destination.
    pub destination: String,
    /// What, in a word.
    pub done: String,
    /// How many events it was done to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<usize>,
}

impl OutboxChange {
    fn new(destination: &str, done: &str, events: Option<usize>) -> Self {
        Self { destination: destination.to_owned(), done: done.to_owned(), events }
    }

    /// So many events are sent again.
    pub fn replaying(destination: &str, events: usize) -> Self {
        Self::new(destination, "replaying", Some(events))
    }

    /// So many events are removed for good.
    pub fn forgotten(destination: &str, events: usize) -> Self {
        Self::new(destination, "forgotten", Some(events))
    }

    /// Sending was stopped, or goes on.
    pub fn paused(destination: &str, paused: bool) -> Self {
        Self::new(destination, if paused { "paused" } else { "resumed" }, None)
    }

    /// The destination is forgotten.
    pub fn removed(destination: &str) -> Self {
        Self::new(destination, "removed", None)
    }
}
