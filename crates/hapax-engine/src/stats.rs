//! What an engine has done, counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counts since the engine was started.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
        }

        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        impl Counters {
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
    /// Those of them that did not ask the store.
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
    /// Leases renewed.
    renewals,
    /// Leases found lost at renewal.
    leases_lost,
    /// Batches committed.
    batches,
    /// Writes in those batches.
    batched_writes,
    /// Overdue operations the sweeper released.
    swept_released,
    /// Overdue operations the sweeper marked in doubt.
    swept_in_doubt,
    /// Overdue operations the sweeper took over to finish.
    swept_taken_over,
    /// Sweeps skipped because the store's clock jumped.
    sweeps_skipped,
    /// Records removed past retention.
    purged,
    /// Records reduced to a tombstone.
    buried,
    /// Pending operations that failed because nobody came for them.
    timed_out,
}

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
