//! Where the small world stands at one moment.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use hapax_core::{Fence, Outcome, Owner, Record, Recovery, Stamp, StateTag, Timestamp};

pub(super) const CLIENTS: usize = 3;
pub(super) const ACTORS: usize = CLIENTS + 2;
/// For how many leases what was sent may be at work after it was given up.
pub(super) const WORKS_FOR_LEASES: u8 = 2;
/// Most sendings that are at work at a time.
pub(super) const AT_WORK_MAX: usize = 2;
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
    /// Sendings that nobody waits for any more and that may still have their effect: when they were
    /// given up.
    pub(super) at_work: [Option<u8>; AT_WORK_MAX],
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
/// in this world expires; but from then on it counts how long what was sent may be at work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored(pub(super) Record);

impl Hash for Stored {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.stamp().hash(state);
        self.0.outcome().map(Outcome::status).hash(state);
        if self.0.tag() == StateTag::InDoubt && self.0.recovery == Recovery::Probe {
            self.0.changed_at.hash(state);
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) enum Phase {
    #[default]
    Idle,
    /// It was told to claim and has not yet.
    Claiming { over: Expected, fence: Fence, entry: Enters },
    /// It followed an owner and must ask what became of that one's sending.
    Asking(Fence, Quiet),
    /// It asked, when it was quiet or earlier, and has not heard the answer yet.
    Asked(Fence, Quiet, Told),
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

/// How a claim enters: to run, to run after an owner whose sending may be at work until then, or to
/// wait for a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Enters {
    Runs,
    Follows(Quiet),
    Queues,
}

/// From when on nothing that was sent before can be at work.
pub(super) type Quiet = Timestamp;

/// What whoever has the effect said about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Told {
    Happened(u16),
    /// It did not, as far as was known then.
    Nothing {
        was_quiet: bool,
    },
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
    NotRecovered,
}

impl Moment {
    pub(super) fn clock(&self) -> Timestamp {
        Timestamp::ZERO.plus(LEASE * u32::from(self.now) + LEASE)
    }

    /// Whether what was sent can no longer be at work when the clock moves on.
    pub(super) fn may_move_on(&self) -> bool {
        self.at_work.iter().flatten().all(|given_up| self.now + 1 < given_up + WORKS_FOR_LEASES)
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

    /// The effect happens; what it answers tells by whose sending.
    pub(super) fn take_effect(&mut self, fence: Fence) {
        self.effects = (self.effects + 1).min(2);
        let answer = 200 + u16::try_from(fence.get()).unwrap_or_default();
        self.first_answer.get_or_insert(answer);
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
