//! What is told about the outbox, as JSON writes it. Instants are the store's, in UTC.

use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use hapax::Timestamp;
use hapax_core::outbox::{Destination, Lag, LaneLag, Parked, Position};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(super) struct DestinationsDocument {
    pub(super) destinations: Vec<DestinationRow>,
}

/// A destination at a glance.
#[derive(Debug, Serialize)]
pub(super) struct DestinationRow {
    pub(super) name: String,
    pub(super) topics: Vec<String>,
    pub(super) paused: bool,
    /// How many relays serve it.
    pub(super) relays: usize,
    /// How many events are not yet sent.
    pub(super) behind: u64,
    /// How long the oldest of them has waited.
    pub(super) behind_seconds: f64,
    pub(super) parked: u64,
}

impl DestinationRow {
    pub(super) fn of(destination: &Destination, lag: &Lag) -> Self {
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
#[derive(Debug, Serialize)]
pub(super) struct DestinationLag {
    pub(super) destination: String,
    pub(super) now: String,
    pub(super) paused: bool,
    pub(super) relays: usize,
    pub(super) behind: u64,
    pub(super) behind_seconds: f64,
    pub(super) parked: u64,
    /// The lanes somebody serves or something waits in.
    pub(super) lanes: Vec<LaneDocument>,
}

#[derive(Debug, Serialize)]
pub(super) struct LaneDocument {
    pub(super) lane: i16,
    /// The relay that has it, if one is alive.
    pub(super) owner: Option<String>,
    /// Up to which position everything is sent, parked or known never to come.
    pub(super) low: Position,
    pub(super) behind: u64,
    pub(super) oldest: Option<String>,
}

impl DestinationLag {
    pub(super) fn of(destination: &str, lag: &Lag) -> Self {
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

#[derive(Debug, Serialize)]
pub(super) struct ParkedEvents {
    pub(super) destination: String,
    pub(super) parked: Vec<ParkedEvent>,
    /// Where the next page starts, if there is one.
    pub(super) next: Option<Position>,
}

/// An event that was put aside.
#[derive(Debug, Serialize)]
pub(super) struct ParkedEvent {
    pub(super) position: Position,
    pub(super) id: String,
    pub(super) topic: String,
    pub(super) key: String,
    pub(super) attempts: u32,
    pub(super) parked_at: String,
    pub(super) parked_seconds: f64,
    /// Whether later events of its key wait behind it.
    pub(super) holds_key: bool,
    /// Whether it is to be sent again.
    pub(super) replaying: bool,
    pub(super) reason: String,
    pub(super) content_type: String,
    /// The payload, if it was asked for and is text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) payload: Option<String>,
    /// The payload, if it was asked for and is not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) payload_base64: Option<String>,
}

impl ParkedEvent {
    pub(super) fn of(parked: &Parked, now: Timestamp, with_payload: bool) -> Self {
        let event = &parked.event;
        let bytes = with_payload.then_some(&event.payload);
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
            payload: text.map(str::to_owned),
            payload_base64: opaque.map(|bytes| STANDARD.encode(bytes)),
        }
    }
}

/// What a change would do.
#[derive(Debug, Serialize)]
pub(super) struct OutboxForecast {
    pub(super) destination: String,
    pub(super) would: String,
    pub(super) events: Vec<ParkedEvent>,
}

/// What was done.
#[derive(Debug, Serialize)]
pub(super) struct OutboxChange {
    pub(super) destination: String,
    pub(super) done: &'static str,
    /// How many events it was done to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) events: Option<usize>,
}

impl OutboxChange {
    pub(super) fn replaying(destination: &str, events: usize) -> Self {
        Self { destination: destination.to_owned(), done: "replaying", events: Some(events) }
    }

    pub(super) fn forgotten(destination: &str, events: usize) -> Self {
        Self { destination: destination.to_owned(), done: "forgotten", events: Some(events) }
    }

    pub(super) fn paused(destination: &str, paused: bool) -> Self {
        let done = if paused { "paused" } else { "resumed" };
        Self { destination: destination.to_owned(), done, events: None }
    }

    pub(super) fn removed(destination: &str) -> Self {
        Self { destination: destination.to_owned(), done: "removed", events: None }
    }
}

/// A span as people read it: its two largest units.
pub(super) fn spelled(seconds: f64) -> String {
    let whole = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).as_secs();
    match whole {
        0 if seconds > 0.0 => format!("{seconds:.1}s"),
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m {}s", whole / 60, whole % 60),
        3600..86_400 => format!("{}h {}m", whole / 3600, whole / 60 % 60),
        _ => format!("{}d {}h", whole / 86_400, whole / 3600 % 24),
    }
}
