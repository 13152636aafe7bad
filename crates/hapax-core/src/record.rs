//! What is stored about an operation.

use std::{
    hash::{BuildHasher, Hasher, RandomState},
    time::Duration,
};

use bytes::Bytes;

use crate::{
    fingerprint::Fingerprint, operation::Operation, outcome::Outcome, policy::Recovery,
    time::Timestamp,
};

/// Everything a store keeps about one operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Which operation it is.
    pub operation: Operation,
    /// The request it was claimed with.
    pub fingerprint: Fingerprint,
    /// The number of the present or last attempt.
    pub fence: Fence,
    /// The name of the present or last attempt.
    pub owner: Owner,
    /// What may be done when an owner vanishes, as the first owner was told.
    pub recovery: Recovery,
    /// When this life of the operation began; retention runs from here.
    pub created_at: Timestamp,
    /// When the present state was entered.
    pub changed_at: Timestamp,
    /// Until when a finished record is answered from.
    pub expires_at: Timestamp,
    /// How long after `expires_at` a late retry is still told that the key is gone.
    pub tombstone: Duration,
    /// Where it stands.
    pub state: State,
}

/// Where an operation stands. What belongs to one state only is kept in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// Accepted for later; no worker has it yet.
    Pending {
        /// After this, any worker may pick it up.
        pick_up_by: Timestamp,
        /// What is to be done.
        request: Bytes,
    },
    /// An owner is at work.
    Running {
        /// Until when the owner is trusted to be alive.
        lease_until: Timestamp,
        /// What is being done, where somebody else may have to finish it.
        request: Option<Bytes>,
    },
    /// Done; the outcome is replayed.
    Completed {
        /// What it answered.
        outcome: Outcome,
    },
    /// Ended in a terminal error; the outcome is replayed.
    Failed {
        /// What it answered.
        outcome: Outcome,
    },
    /// Nobody knows whether the effect happened.
    InDoubt {
        /// Why that is unknown.
        doubt: Doubt,
        /// What was being done, where somebody else may have to finish it.
        request: Option<Bytes>,
    },
    /// Given back: nothing happened, the next arrival executes.
    Released,
    /// Past retention; only the fact that it existed is left.
    Buried,
}

/// The name of a state, as stored, listed and counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StateTag {
    /// [`State::Pending`]
    Pending = 1,
    /// [`State::Running`]
    Running = 2,
    /// [`State::Completed`]
    Completed = 3,
    /// [`State::Failed`]
    Failed = 4,
    /// [`State::InDoubt`]
    InDoubt = 5,
    /// [`State::Released`]
    Released = 6,
    /// [`State::Buried`]
    Buried = 7,
}

impl StateTag {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Pending,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::InDoubt,
        Self::Released,
        Self::Buried,
    ];

    /// The word used in SQL views, metrics and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::InDoubt => "in_doubt",
            Self::Released => "released",
            Self::Buried => "buried",
        }
    }

    /// Whether retention applies: nothing in flight or in doubt ever expires.
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Released | Self::Buried => true,
            Self::Pending | Self::Running | Self::InDoubt => false,
        }
    }
}

/// Why it is unknown whether an effect happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Doubt {
    /// The request was sent and no complete answer came back.
    Unanswered = 1,
    /// The work panicked or was cut off by its timeout.
    Interrupted = 2,
    /// The owner's lease ended and the owner said nothing.
    OwnerVanished = 3,
}

impl Doubt {
    /// The word used in problem documents, metrics and pages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unanswered => "unanswered",
            Self::Interrupted => "interrupted",
            Self::OwnerVanished => "owner_vanished",
        }
    }
}

/// The number that grows at every claim and takeover of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(i64);

impl Fence {
    /// The fence of the first attempt.
    pub const FIRST: Self = Self(1);

    /// The fence a store kept; `None` if no fence ever had this value.
    pub const fn from_stored(value: i64) -> Option<Self> {
        if value >= 1 { Some(Self(value)) } else { None }
    }

    /// The number, as stored and as forwarded downstream.
    pub const fn get(self) -> i64 {
        self.0
    }

    /// The fence of the attempt after this one.
    #[must_use]
    pub fn next(self) -> Self {
        assert!(self.0 < i64::MAX, "an operation cannot be claimed more often than fences exist");
        Self(self.0 + 1)
    }
}

/// The random name of one attempt, drawn by its claimant.
///
/// It tells an owner that its unconfirmed claim did arrive, and keeps an owner that slept through
/// retention and purge from passing for the owner of the next life, whose fences start anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner(pub i64);

impl Owner {
    /// A name that nobody else draws, in this process or another.
    ///
    /// The randomness is the operating system's, by way of the standard library, which asks for it
    /// once for each thread: a generator seeded by a clock would give two processes that start
    /// alike the same names.
    pub fn draw() -> Self {
        Self::from_random(RandomState::new().build_hasher().finish())
    }

    /// The name this random number stands for: for simulations, where chance is an argument.
    pub const fn from_random(random: u64) -> Self {
        // Half of the numbers, so that none is negative, and never zero, which reads as nobody.
        let half = random >> 1;
        Self(if half == 0 { 1 } else { half.cast_signed() })
    }
}

/// What a conditional write compares: whose record it was, in which state, until when.
///
/// Two equal stamps of one operation mean that nothing happened in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// The fence seen.
    pub fence: Fence,
    /// The owner seen.
    pub owner: Owner,
    /// The state seen.
    pub tag: StateTag,
    /// The end of the lease seen; [`Timestamp::ZERO`] in states that have none.
    pub until: Timestamp,
}

impl Record {
    /// What a conditional write on this record compares.
    pub fn stamp(&self) -> Stamp {
        Stamp { fence: self.fence, owner: self.owner, tag: self.tag(), until: self.until() }
    }

    /// The name of its state.
    pub fn tag(&self) -> StateTag {
        match &self.state {
            State::Pending { .. } => StateTag::Pending,
            State::Running { .. } => StateTag::Running,
            State::Completed { .. } => StateTag::Completed,
            State::Failed { .. } => StateTag::Failed,
            State::InDoubt { .. } => StateTag::InDoubt,
            State::Released => StateTag::Released,
            State::Buried => StateTag::Buried,
        }
    }

    /// The end of its lease, or of the time to be picked up; [`Timestamp::ZERO`] if it has none.
    pub fn until(&self) -> Timestamp {
        match &self.state {
            State::Pending { pick_up_by, .. } => *pick_up_by,
            State::Running { lease_until, .. } => *lease_until,
            State::Completed { .. }
            | State::Failed { .. }
            | State::InDoubt { .. }
            | State::Released
            | State::Buried => Timestamp::ZERO,
        }
    }

    /// The stored outcome, if it ended with one.
    pub fn outcome(&self) -> Option<&Outcome> {
        match &self.state {
            State::Completed { outcome } | State::Failed { outcome } => Some(outcome),
            State::Pending { .. }
            | State::Running { .. }
            | State::InDoubt { .. }
            | State::Released
            | State::Buried => None,
        }
    }

    /// The stored request, if somebody else may have to finish the operation.
    pub fn request(&self) -> Option<&Bytes> {
        match &self.state {
            State::Pending { request, .. } => Some(request),
            State::Running { request, .. } | State::InDoubt { request, .. } => request.as_ref(),
            State::Completed { .. } | State::Failed { .. } | State::Released | State::Buried => {
                None
            }
        }
    }

    /// Whether it is finished and past its retention.
    pub fn is_expired(&self, now: Timestamp) -> bool {
        self.tag().is_terminal() && self.expires_at <= now
    }

    /// From when on nothing of it needs to be kept.
    pub fn forget_at(&self) -> Timestamp {
        self.expires_at.plus(self.tombstone)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, thread};

    use super::*;

    #[test]
    fn no_two_threads_draw_the_same_owner() {
        let draw = || (0..1000).map(|_| Owner::draw()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..8).map(|_| thread::spawn(draw)).collect();
        let drawn = threads.into_iter().flat_map(|thread| thread.join().unwrap());
        let drawn: HashSet<_> = drawn.collect();
        assert_eq!(drawn.len(), 8000);
        assert!(drawn.iter().all(|owner| owner.0 > 0));
    }

    #[test]
    fn every_random_number_stands_for_somebody() {
        for (random, owner) in [(0, 1), (1, 1), (2, 1), (7, 3), (u64::MAX, i64::MAX)] {
            assert_eq!(Owner::from_random(random), Owner(owner));
        }
    }
}
