//! What is measured, with every default filled in.

use std::time::Duration;

use crate::{
    args::{OutboxBenchArgs, OutboxPart},
    error::BenchError,
    plan::PostgresChoice,
};

#[derive(Debug)]
pub(crate) struct OutboxPlan {
    pub(super) postgres: PostgresChoice,
    pub(super) parts: Vec<OutboxPart>,
    pub(super) rounds: u32,
    pub(super) duration: Duration,
    /// How many events a log is filled with before it is emptied.
    pub(super) events: u64,
    /// How many callers write at the same time.
    pub(super) callers: usize,
    /// How many events a second are written where the delay is measured.
    pub(super) rate: u32,
    /// For how long a snapshot is held.
    pub(super) hold: Duration,
}

impl OutboxPlan {
    pub(crate) fn resolve(raw: &OutboxBenchArgs) -> Result<Self, BenchError> {
        use OutboxPart::{Drain, Enqueue, Held, Idle, Inbox, Latency};
        let measure = &raw.measure;
        let (rounds, seconds, events, hold) =
            if measure.quick { (1, 1.0, 20_000, 3.0) } else { (5, 3.0, 200_000, 60.0) };
        Ok(Self {
            postgres: PostgresChoice::resolve(measure.postgres.as_deref())?,
            parts: raw
                .parts
                .clone()
                .unwrap_or_else(|| vec![Drain, Enqueue, Latency, Held, Idle, Inbox]),
            rounds: measure.rounds.unwrap_or(rounds),
            duration: Duration::from_secs_f64(measure.seconds.unwrap_or(seconds)),
            events: raw.events.unwrap_or(events),
            callers: raw.callers,
            rate: raw.rate,
            hold: Duration::from_secs_f64(raw.hold.unwrap_or(hold)),
        })
    }
}
