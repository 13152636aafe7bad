//! Where the small world stands at one moment.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use hapax_core::{Fence, Outcome, Owner, Record, Stamp, StateTag, Timestamp};

pub(super) const CLIENTS: usize = 3;
pub(super) const ACTORS: usize = CLIENTS + 2;
pub(super) const LEASE: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Moment {
    pub(super) now: u8,
    pub(super) jumps_back: u8,
    pub(super) crashes: u8,
    pub(super) attempts: u8,
    pub(super) stored: Option<Stored>,
    /// The clients, in an order without meaning, then the sweepers.
    pub(super) actors: [Phase; ACTORS],
    /// Requests that reached whatever has the effect; two stands for more.
    pub(super) effects: u8,
    /// What the first of them answered; a deduplicating upstream answers it ever after.
    pub(super) first_answer: Option<u16>,
    /// The first outcome that was ever stored.
    pub(super) first_stored: Option<u16>,
    /// Whether an owner ever settled what was not, or no longer, its own.
    pub(super) usurped: bool,
}

/// A record. Two that differ only in when they were written behave the same here, because nothing
/// in this world expires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored(pub(super) Record);

impl Hash for Stored {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.stamp().hash(state);
        self.0.outcome().map(Outcome::status).hash(state);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum Phase {
    #[default]
    Idle,
    /// It was told to claim and has not yet.
    Claiming { over: Expected, fence: Fence },
    /// It won and has not done anything yet.
    Owning(Fence),
    /// It did something and has not said so yet.
    Ending(Fence, End),
    /// It saw an abandoned record and has not yet written what it makes of it.
    Onlooking(Stamp, Verdict),
    /// It answered its client.
    Answered(u16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Expected {
    Nothing,
    Spent(Stamp),
    Abandoned(Stamp),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Verdict {
    Release,
    Doubt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum End {
    Answered(u16),
    Unanswered,
    NothingSent,
}

impl Moment {
    pub(super) fn clock(&self) -> Timestamp {
        Timestamp::ZERO.plus(LEASE * u32::from(self.now) + LEASE)
    }

    pub(super) fn record(&self) -> Option<&Record> {
        self.stored.as_ref().map(|stored| &stored.0)
    }

    pub(super) fn store(&mut self, record: Record) {
        if let Some(outcome) = record.outcome() {
            self.first_stored.get_or_insert_with(|| outcome.status());
        }
        self.stored = Some(Stored(record));
    }

    pub(super) fn tag(&self) -> Option<StateTag> {
        self.record().map(Record::tag)
    }

    /// Clients are alike, so which of them does something is no difference worth exploring.
    pub(super) fn without_names(mut self) -> Self {
        self.actors[..CLIENTS].sort_by_cached_key(|phase| {
            let mut hasher = DefaultHasher::new();
            phase.hash(&mut hasher);
            hasher.finish()
        });
        self
    }
}

/// The name of an attempt. Nothing is purged in this world, so fences are names already.
pub(super) fn owner(fence: Fence) -> Owner {
    Owner(fence.get())
}
