//! The answer: tables for people, JSON for programs.

use std::{
    io::{self, Write},
    time::Duration,
};

use hapax_gateway::admin::documents::{
    DestinationLag, DestinationRow, DestinationsDocument, LaneDocument, OutboxChange,
    OutboxForecast, ParkedEvent, ParkedEvents,
};
use serde::Serialize;

use super::{change::counted, error::OutboxError};
use crate::table::{columns, harmless};

/// How the answer is given.
pub(super) struct OutboxPrinter {
    json: bool,
}

impl OutboxPrinter {
    pub(super) fn new(json: bool) -> Self {
        Self { json }
    }

    pub(super) fn destinations(&self, listing: &DestinationsDocument) -> Result<(), OutboxError> {
        if self.json {
            return json(listing);
        }
        let head = ["DESTINATION", "STATE", "RELAYS", "BEHIND", "OLDEST", "PARKED", "TOPICS"];
        table(head, listing.destinations.iter().map(destination))
    }

    pub(super) fn lag(&self, behind: &DestinationLag) -> Result<(), OutboxError> {
        if self.json {
            return json(behind);
        }
        let DestinationLag { destination, relays, behind: events, behind_seconds, parked, .. } =
            behind;
        let paused = if behind.paused { ", paused" } else { "" };
        writeln!(
            io::stdout(),
            "{}{paused}: {} behind, the oldest for {}; {parked} parked; {relays} relays",
            harmless(destination),
            counted(*events),
            spelled(*behind_seconds),
        )?;
        if behind.lanes.is_empty() {
            return Ok(());
        }
        table(["LANE", "RELAY", "SENT UP TO", "BEHIND", "OLDEST"], behind.lanes.iter().map(lane))
    }

    pub(super) fn parked(
        &self,
        listing: &ParkedEvents,
        with_payload: bool,
    ) -> Result<(), OutboxError> {
        if self.json {
            return json(listing);
        }
        events(&listing.parked)?;
        if with_payload {
            payloads(&listing.parked)?;
        }
        if let Some(next) = listing.next {
            writeln!(io::stdout(), "more: --after {next}")?;
        }
        Ok(())
    }

    pub(super) fn foreseen(&self, foreseen: &OutboxForecast) -> Result<(), OutboxError> {
        if self.json {
            return json(foreseen);
        }
        let OutboxForecast { destination, would, events: named } = foreseen;
        if !named.is_empty() {
            events(named)?;
        }
        let destination = harmless(destination);
        writeln!(io::stdout(), "Nothing was changed. Of {destination}, {would}.")?;
        Ok(())
    }

    pub(super) fn changed(&self, changed: &OutboxChange) -> Result<(), OutboxError> {
        if self.json {
            return json(changed);
        }
        let mut out = io::stdout().lock();
        let (name, done) = (harmless(&changed.destination), &changed.done);
        match changed.events {
            Some(events) => writeln!(out, "{name}: {done} {}", counted(events))?,
            None => writeln!(out, "{name}: {done}")?,
        }
        Ok(())
    }
}

fn events(events: &[ParkedEvent]) -> Result<(), OutboxError> {
    let head = ["POSITION", "TOPIC", "KEY", "ATTEMPTS", "PARKED FOR", "STATE", "REASON"];
    table(head, events.iter().map(parked))
}

fn payloads(events: &[ParkedEvent]) -> Result<(), OutboxError> {
    for event in events {
        let payload = match (&event.payload, &event.payload_base64) {
            (Some(text), _) => harmless(text),
            (None, Some(base64)) => format!("in base64: {base64}"),
            (None, None) if event.encrypted => "encrypted; give --master-key-file".to_owned(),
            (None, None) => continue,
        };
        writeln!(io::stdout(), "\n{} {}\n{payload}", event.position, event.content_type)?;
    }
    Ok(())
}

fn destination(row: &DestinationRow) -> [String; 7] {
    let state = match (row.paused, row.relays) {
        (true, _) => "paused",
        (false, 0) => "unserved",
        (false, _) => "sending",
    };
    [
        harmless(&row.name),
        state.to_owned(),
        row.relays.to_string(),
        row.behind.to_string(),
        spelled(row.behind_seconds),
        row.parked.to_string(),
        harmless(&row.topics.join(", ")),
    ]
}

fn lane(row: &LaneDocument) -> [String; 5] {
    [
        row.lane.to_string(),
        row.owner.clone().unwrap_or_else(|| "nobody".to_owned()),
        row.low.to_string(),
        row.behind.to_string(),
        row.oldest.clone().unwrap_or_default(),
    ]
}

fn parked(event: &ParkedEvent) -> [String; 7] {
    let state = match (event.replaying, event.holds_key) {
        (true, _) => "to be sent again",
        (false, true) => "holds its key",
        (false, false) => "alone",
    };
    [
        event.position.to_string(),
        harmless(&event.topic),
        harmless(&event.key),
        event.attempts.to_string(),
        spelled(event.parked_seconds),
        state.to_owned(),
        harmless(&event.reason).replace('\n', " "),
    ]
}

fn table<const N: usize>(
    head: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
) -> Result<(), OutboxError> {
    let rows: Vec<_> = std::iter::once(head.map(str::to_owned)).chain(rows).collect();
    Ok(columns(&mut io::stdout().lock(), &rows)?)
}

fn json(value: &impl Serialize) -> Result<(), OutboxError> {
    let mut out = io::stdout().lock();
    serde_json::to_writer_pretty(&mut out, value).map_err(io::Error::from)?;
    writeln!(out)?;
    Ok(())
}

/// A span as people read it: its two largest units.
fn spelled(seconds: f64) -> String {
    let whole = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX).as_secs();
    match whole {
        0 if seconds > 0.0 => format!("{seconds:.1}s"),
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m {}s", whole / 60, whole % 60),
        3600..86_400 => format!("{}h {}m", whole / 3600, whole / 60 % 60),
        _ => format!("{}d {}h", whole / 86_400, whole / 3600 % 24),
    }
}
