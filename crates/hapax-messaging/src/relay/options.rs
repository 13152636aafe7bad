//! How patient a relay is.

use std::time::Duration;

use hapax_core::{
    outbox::ReadLimits,
    retry::{Backoff, Jitter, Schedule},
};

use super::error::RelayError;

/// How a relay reads, sends and waits.
///
/// ```
/// use hapax_messaging::relay::{OnFailure, RelayOptions};
///
/// let options = RelayOptions { on_failure: OnFailure::Block, ..RelayOptions::default() };
/// assert_eq!(options.pipes, 8);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RelayOptions {
    /// What becomes of an event that is not taken.
    pub on_failure: OnFailure,
    /// Whether an event that is not encrypted is parked instead of being sent: somebody forgot to encrypt it.
    pub encrypted_only: bool,
    /// How often and at what distance an event is tried that was missed.
    pub schedule: Schedule,
    /// How often an event is tried that was refused.
    pub refusals_max: u32,
    /// How many sends may be under way at once. Each has lanes of its own, so that one slow answer
    /// holds up a part of the keys.
    pub pipes: usize,
    /// How many events one send has at most.
    pub batch: usize,
    /// How many events are kept in memory at most, and how many bytes of them.
    pub window: ReadLimits,
    /// For how long a sign of life is good: how long others wait before they take the lanes of a
    /// relay that died.
    pub lease: Duration,
    /// How long to wait before looking again while events come.
    pub poll_min: Duration,
    /// The same, after nothing has come for a while.
    pub poll_max: Duration,
    /// How often progress is stored while there is some.
    pub acknowledge_every: Duration,
    /// How often events that are final everywhere are removed from the log.
    pub retire_every: Duration,
    /// How long what is under way may take after the relay was told to stop.
    pub grace: Duration,
}

/// What becomes of an event that was tried as often as it may be and not taken.
///
/// ```
/// use hapax_messaging::relay::{OnFailure, RelayOptions};
///
/// assert_eq!(RelayOptions::default().on_failure, OnFailure::ParkTail);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum OnFailure {
    /// It is tried for ever, and later events of its key wait for it.
    Block,
    /// It is parked, and later events of its key go on without it.
    ParkMessage,
    /// It is parked, and later events of its key are parked behind it, to be replayed in order.
    ParkTail,
}

impl Default for RelayOptions {
    /// Order is kept: what cannot be sent is parked with its key's tail after ten attempts, or three
    /// refusals.
    fn default() -> Self {
        Self {
            on_failure: OnFailure::ParkTail,
            encrypted_only: false,
            schedule: patient(),
            refusals_max: 3,
            pipes: 8,
            batch: 500,
            window: ReadLimits { rows: 10_000, bytes: 64 << 20 },
            lease: Duration::from_secs(15),
            poll_min: Duration::from_millis(5),
            poll_max: Duration::from_secs(1),
            acknowledge_every: Duration::from_millis(250),
            retire_every: Duration::from_secs(10),
            grace: Duration::from_secs(10),
        }
    }
}

impl RelayOptions {
    pub(super) fn check(&self) -> Result<(), RelayError> {
        let refuse =
            |option, given: String, bounds| Err(RelayError::Option { option, given, bounds });
        if !(1..=64).contains(&self.pipes) {
            return refuse("pipes", self.pipes.to_string(), "1 to 64");
        }
        if self.batch == 0 || self.window.rows == 0 {
            return refuse("batch and window", "0".to_owned(), "at least 1");
        }
        if self.refusals_max == 0 {
            return refuse("refusals_max", "0".to_owned(), "at least 1");
        }
        if self.lease < Duration::from_secs(1) {
            return refuse("lease", format!("{:?}", self.lease), "at least 1 s");
        }
        if self.poll_min.is_zero() || self.poll_min > self.poll_max {
            return refuse(
                "poll_min",
                format!("{:?}", self.poll_min),
                "more than 0, up to poll_max",
            );
        }
        Ok(())
    }
}

/// Ten attempts over about two minutes.
fn patient() -> Schedule {
    let (base, cap) = (Duration::from_millis(200), Duration::from_secs(30));
    let backoff = Backoff { jitter: Jitter::Equal, base, cap };
    Schedule::new(backoff, 10).unwrap_or_default()
}
