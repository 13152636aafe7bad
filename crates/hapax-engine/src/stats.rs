//! What an engine has done, counted.

use std::{
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use crate::histogram::{Distribution, Histogram};

macro_rules! stats {
    ($(#[doc = $help:literal] $name:ident,)*) => {
        /// Counts since the engine was started.
        ///
        /// ```
        /// use hapax_core::{Salt, Timestamp, memory};
        /// use hapax_engine::{Engine, Options};
        ///
        /// # #[tokio::main(flavor = "current_thread")]
        /// # async fn main() {
        /// let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
        /// let engine = Engine::start(store, Options::default());
        /// assert_eq!(engine.stats().executions, 0);
        /// for count in engine.stats().named() {
        ///     println!("{} {}", count.name, count.count);
        /// }
        /// # }
        /// ```
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $(#[doc = $help] pub $name: u64,)*
        }

        impl Stats {
            /// Every count with its name and what it counts, for whoever shows them all.
            pub fn named(&self) -> impl Iterator<Item = Named> {
                let all = [$(
                    Named { name: stringify!($name), help: $help.trim_ascii(), count: self.$name },
                )*];
                all.into_iter()
            }
        }

        #[derive(Debug, Default)]
        pub(crate) struct EngineCounters {
            $(pub(crate) $name: Counter,)*
            pub(crate) spread: CommitHistograms,
        }

        impl EngineCounters {
            pub(crate) fn snapshot(&self) -> Stats {
                Stats { $($name: self.$name.0.load(Relaxed),)* }
            }
        }
    };
}

stats! {
    /// Operations that began here for the first time or anew.
    executions,
    /// Operations taken over from an owner that vanished.
    takeovers,
    /// Answers from stored outcomes.
    replays,
    /// Answers from stored outcomes that did not ask the store.
    replays_from_cache,
    /// Arrivals told that it is busy.
    busy,
    /// Arrivals refused because the key was used for another request.
    mismatches,
    /// Arrivals told that the outcome is unknown.
    in_doubt,
    /// Arrivals told that the outcome is past retention.
    gone,
    /// Arrivals that could not be decided.
    undecided,
    /// Attempts whose end was stored.
    settles,
    /// Attempts whose end counted no more, because somebody else had taken over.
    settles_lost,
    /// Attempts whose end could not be recorded.
    settles_not_recorded,
    /// Writes whose confirmation was lost and that were resolved by reading again.
    unconfirmed,
    /// Accepted operations that had no effect yet and wait for their next attempt.
    queued_again,
    /// Steps whose result was kept.
    steps,
    /// Leases renewed.
    renewals,
    /// Leases found lost at renewal.
    leases_lost,
    /// Batches committed.
    batches,
    /// Writes in committed batches.
    batched_writes,
    /// Attempts that were stored as completed.
    ended_completed,
    /// Attempts that were stored as failed for good.
    ended_failed,
    /// Attempts that gave their key back.
    ended_released,
    /// Operations left in doubt, because an attempt got no answer or its owner vanished.
    left_in_doubt,
    /// Overdue operations the sweeper released.
    swept_released,
    /// Overdue operations the sweeper marked in doubt.
    swept_in_doubt,
    /// Overdue operations the sweeper took over to finish.
    swept_taken_over,
    /// Sweeps skipped because the store's clock jumped.
    sweeps_skipped,
    /// Records that the store had acknowledged, then lost, and that were written back.
    restored,
    /// Records removed past retention.
    purged,
    /// Records reduced to a tombstone.
    buried,
    /// Pending operations that failed because nobody came for them.
    timed_out,
}

/// One of the counts of [`Stats`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// The name of the field.
    pub name: &'static str,
    /// What is counted, as a sentence.
    pub help: &'static str,
    /// The count.
    pub count: u64,
}

/// How an engine's commits are spread.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Spreads {
    /// Writes of each batch.
    pub batch_writes: Distribution,
    /// How long the store took for each batch, in microseconds.
    pub commit_micros: Distribution,
}

#[derive(Debug)]
pub(crate) struct CommitHistograms {
    batch_writes: Histogram,
    commit_micros: Histogram,
}

impl CommitHistograms {
    pub(crate) fn committed(&self, writes: usize, took: Duration) {
        self.batch_writes.observe(u64::try_from(writes).unwrap_or(u64::MAX));
        self.commit_micros.observe(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub(crate) fn snapshot(&self) -> Spreads {
        Spreads {
            batch_writes: self.batch_writes.snapshot(),
            commit_micros: self.commit_micros.snapshot(),
        }
    }
}

impl Default for CommitHistograms {
    fn default() -> Self {
        Self {
            batch_writes: Histogram::new(&[1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]),
            commit_micros: Histogram::new(LATENCY_MICROS),
        }
    }
}

/// The bounds of every duration that is counted, in microseconds: from a replay out of memory to
/// a request nobody waits for any more.
pub const LATENCY_MICROS: &[u64] = &[
    100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: usize) {
        self.0.fetch_add(u64::try_from(count).unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }
}
