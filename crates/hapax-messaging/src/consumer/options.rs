//! How a consumer treats its messages.

use std::time::Duration;

use hapax_core::{
    inbox::Guard,
    retry::{Backoff, Jitter, Schedule},
};

/// How a consumer treats its messages.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_messaging::consumer::{GapPolicy, GivenUp, Guard, Options};
///
/// let gap = GapPolicy { patience: Duration::from_secs(60), then: GivenUp::ActOn };
/// let guard = Some(Guard::EveryOne { first: 1, held_max: 100 });
/// let options = Options { guard, gap, ..Options::default() };
/// assert_eq!(options.concurrency, 8);
/// ```
#[derive(Debug, Clone)]
pub struct Options {
    /// For how long what became of a message is remembered. Must not be shorter than the broker may
    /// deliver a message again.
    pub retention: Duration,
    /// Most transactions at the same time; messages of one key are acted on one after the other.
    pub concurrency: usize,
    /// Most messages acted on in one transaction, one after the other: one commit for all of them.
    ///
    /// Nobody waits for a transaction to be full: it has what is ready when it begins, and what waits
    /// behind that under the same key. If one of them was acted on before, or fails, or another
    /// transaction is in the way, everything is rolled back and they are acted on one by one: handlers
    /// are then called again, only what fails alone costs an attempt, and nothing overtakes under its
    /// key. With [`ProgressStorage::Offsets`] a transaction has messages of one partition. Under a
    /// [guard](Self::guard) each message has a transaction of its own, because whether one has its turn
    /// depends on what became of those before it.
    ///
    /// At most [`MESSAGES_TOGETHER_MAX`](hapax_core::limits::MESSAGES_TOGETHER_MAX).
    pub batch: usize,
    /// How long a handler may take before it counts as failed.
    pub timeout: Duration,
    /// How often a message is tried that its handler fails, and after which pauses it comes again;
    /// then it is a dead letter.
    pub attempts: Schedule,
    /// After how long a message comes again of which another delivery is being acted on.
    pub busy_pause: Duration,
    /// After how long a message comes again when the database, or the place for dead letters, could
    /// not be reached. Costs no attempt.
    pub outage_pause: Duration,
    /// How often the broker is told that a message is still being worked on.
    pub heartbeat: Duration,
    /// How often held messages are looked for, and what is past its retention is forgotten.
    pub patrol: Duration,
    /// Where it is kept how far a source has come.
    pub progress: ProgressStorage,
    /// Which versions of a key are acted on; `None` for all, as they come.
    pub guard: Option<Guard>,
    /// How long a message is held for its turn, and what then becomes of it.
    pub gap: GapPolicy,
}

impl Default for Options {
    /// Seven days, eight transactions at a time with a message each, thirty seconds for a handler, ten attempts from a second to five minutes
    /// apart, progress by record, and no guard.
    fn default() -> Self {
        let backoff = Backoff {
            jitter: Jitter::Full,
            base: Duration::from_secs(1),
            cap: Duration::from_secs(5 * 60),
        };
        Self {
            retention: Duration::from_secs(7 * 86_400),
            concurrency: 8,
            batch: 1,
            timeout: Duration::from_secs(30),
            attempts: Schedule::new(backoff, 10).unwrap_or_default(),
            busy_pause: Duration::from_secs(1),
            outage_pause: Duration::from_secs(5),
            heartbeat: Duration::from_secs(10),
            patrol: Duration::from_secs(5),
            progress: ProgressStorage::Records,
            guard: None,
            gap: GapPolicy::default(),
        }
    }
}

/// Where it is kept how far a source has come.
///
/// ```
/// use hapax_messaging::consumer::{Options, ProgressStorage};
///
/// // For Kafka: one row for each partition, instead of one for each message.
/// let options = Options { progress: ProgressStorage::Offsets, ..Options::default() };
/// # drop(options);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgressStorage {
    /// A record for each message, kept for the retention; the broker keeps its own books beside it.
    Records,
    /// One offset for each partition, moved in the transaction of the effect. There is no window in
    /// which a message could be acted on again, and nothing to forget. For sources whose messages have
    /// a [`Place`](super::Place).
    Offsets,
}

/// What becomes of messages behind a gap that does not close.
///
/// ```
/// use hapax_messaging::consumer::{GapPolicy, GivenUp};
///
/// assert_eq!(GapPolicy::default().then, GivenUp::DeadLetter);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GapPolicy {
    /// How long a message is held.
    pub patience: Duration,
    /// What then becomes of it. Either way its key goes on behind it.
    pub then: GivenUp,
}

impl Default for GapPolicy {
    /// Ten minutes, then it is a dead letter.
    fn default() -> Self {
        Self { patience: Duration::from_secs(600), then: GivenUp::DeadLetter }
    }
}

/// What becomes of a message behind a gap that was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GivenUp {
    /// It is a dead letter, with the reason `gap`.
    DeadLetter,
    /// It is acted on.
    ActOn,
}
