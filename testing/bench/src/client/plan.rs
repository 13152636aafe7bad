use std::time::Duration;

use crate::args::ClientBenchArgs;

/// What is measured, with every default filled in.
#[derive(Debug)]
pub(crate) struct ClientPlan {
    pub(super) rounds: u32,
    pub(super) duration: Duration,
    pub(super) callers: usize,
    /// How much longer than it takes a commit is made to take.
    pub(super) sync: Duration,
    /// How often a part is timed in each round.
    pub(super) repetitions: u64,
}

impl ClientPlan {
    pub(crate) fn resolve(raw: &ClientBenchArgs) -> Self {
        let (rounds, seconds, repetitions) =
            if raw.quick { (1, 0.5, 2_000) } else { (9, 1.5, 50_000) };
        Self {
            rounds: raw.rounds.unwrap_or(rounds),
            duration: Duration::from_secs_f64(raw.seconds.unwrap_or(seconds)),
            callers: raw.callers,
            sync: Duration::from_micros(u64::from(raw.sync_us)),
            repetitions,
        }
    }
}
