//! An arrival meets what is stored: the first half of the machine.

use bytes::Bytes;

use crate::{
    fingerprint::{Difference, Fingerprint},
    operation::Operation,
    policy::{Policy, Recovery},
    record::{Doubt, Fence, Owner, Record, State},
    store::{Claim, Entry, Over},
    time::Timestamp,
};

/// Somebody asks for an operation.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// Which operation.
    pub operation: Operation,
    /// With which request.
    pub fingerprint: Fingerprint,
    /// The name this attempt would run under.
    pub owner: Owner,
    /// Whether to run now or to queue, and what to keep so that somebody else can finish it.
    pub mode: RunMode,
}

/// What an arrival wants to happen if it is the first.
///
/// ```
/// use hapax_core::RunMode;
///
/// // Kept, so that another process can finish what this one began.
/// let run = RunMode::Run { request: Some("pay 100".into()) };
/// // Answered at once, and run by whoever is free.
/// let later = RunMode::Queue { request: "pay 100".into() };
/// # drop((run, later));
/// ```
#[derive(Debug, Clone)]
pub enum RunMode {
    /// Run at once, as its owner.
    Run {
        /// Kept so that somebody else can finish it, if given.
        request: Option<Bytes>,
    },
    /// Accept now, run later.
    Queue {
        /// What is to be done later.
        request: Bytes,
    },
}

/// What to do with an arrival.
#[derive(Debug, Clone)]
pub enum Decision {
    /// Nothing stands in the way: write this claim, and run if it is won.
    Execute(Claim),
    /// The owner is gone: write this claim, and if it is won, recover as told.
    TakeOver {
        /// The claim to write. It runs, also for an arrival that wanted to queue: what waits in a
        /// queue has never been sent.
        claim: Claim,
        /// [`Recovery::Resend`] or [`Recovery::Probe`].
        recovery: Recovery,
        /// From when on nothing that was sent before can still be at work.
        quiet_from: Timestamp,
    },
    /// The owner is gone and must not be followed: mark the record in doubt.
    GiveUp,
    /// Somebody is at work, or it waits for a worker.
    Busy {
        /// Until when the present lease lasts.
        until: Timestamp,
    },
    /// It is finished: answer with its outcome.
    Replay,
    /// Nobody knows whether it happened, and nobody may try.
    InDoubt {
        /// Why that is unknown.
        doubt: Doubt,
    },
    /// The key was used for another request.
    Mismatch(Difference),
    /// The key was used and its outcome is past retention.
    Gone {
        /// When the outcome expired.
        since: Timestamp,
    },
}

/// Decides what an arrival may do, given what is stored. `now` is the store's clock.
///
/// A different request is refused before anything else is said about a used key.
pub fn decide(
    now: Timestamp,
    arrival: &Arrival,
    found: Option<&Record>,
    policy: &Policy,
) -> Decision {
    let claim = |over, fence| arrival.claim(over, fence, policy);
    let Some(record) = found else {
        return Decision::Execute(claim(Over::Nothing, Fence::FIRST));
    };
    assert_eq!(record.operation, arrival.operation, "a record answers only for its operation");
    let (stamp, next) = (record.stamp(), record.fence.next());
    if record.is_expired(now) {
        return if now < record.forget_at() {
            Decision::Gone { since: record.expires_at }
        } else {
            Decision::Execute(claim(Over::Spent(stamp), next))
        };
    }
    if let Some(difference) = record.fingerprint.difference(&arrival.fingerprint) {
        return Decision::Mismatch(difference);
    }
    let take_over = |recovery| {
        let claim = arrival.follow(Over::Abandoned(stamp), next, recovery, policy);
        Decision::TakeOver { claim, recovery, quiet_from: quiet_from(record, policy) }
    };
    match &record.state {
        State::Pending { pick_up_by, .. } => Decision::Busy { until: *pick_up_by },
        State::Running { lease_until, .. } if now < *lease_until => {
            Decision::Busy { until: *lease_until }
        }
        State::Running { .. } => match record.recovery {
            recovery @ (Recovery::Resend | Recovery::Probe) => take_over(recovery),
            Recovery::Hold => Decision::GiveUp,
        },
        State::InDoubt { doubt, .. } => match record.recovery {
            recovery @ (Recovery::Resend | Recovery::Probe) => take_over(recovery),
            Recovery::Hold => Decision::InDoubt { doubt: *doubt },
        },
        State::Completed { .. } | State::Failed { .. } => Decision::Replay,
        State::Released => Decision::Execute(claim(Over::Spent(stamp), next)),
        State::Buried => Decision::Gone { since: record.expires_at },
    }
}

/// From when on nothing that was sent for this record can still be at work.
///
/// A sending began at the latest when its owner said that it knew no more, or when the lease of an
/// owner that said nothing was over; whatever has the effect may be at work for as long as the
/// policy says after that. What is pending was never sent.
pub fn quiet_from(record: &Record, policy: &Policy) -> Timestamp {
    match &record.state {
        State::Running { lease_until, .. } => lease_until.plus(policy.works_for()),
        State::InDoubt { .. } => record.changed_at.plus(policy.works_for()),
        State::Pending { .. }
        | State::Completed { .. }
        | State::Failed { .. }
        | State::Released
        | State::Buried => Timestamp::ZERO,
    }
}

impl Arrival {
    /// The claim of an arrival that follows an owner whose fate is unknown.
    fn follow(&self, over: Over, fence: Fence, recovery: Recovery, policy: &Policy) -> Claim {
        let request = match &self.mode {
            RunMode::Run { request } => request.clone(),
            RunMode::Queue { request } => Some(request.clone()),
        };
        let entry = Entry::Run { lease: policy.lease(), request };
        Claim { recovery, entry, ..self.claim(over, fence, policy) }
    }

    pub(crate) fn claim(&self, over: Over, fence: Fence, policy: &Policy) -> Claim {
        let entry = match &self.mode {
            RunMode::Run { request } => {
                Entry::Run { lease: policy.lease(), request: request.clone() }
            }
            RunMode::Queue { request } => {
                Entry::Queue { pick_up: policy.lease(), request: request.clone() }
            }
        };
        let retention = policy.retention();
        Claim {
            operation: self.operation.clone(),
            fingerprint: self.fingerprint,
            over,
            fence,
            owner: self.owner,
            recovery: policy.recovery(),
            retention: retention.window,
            tombstone: retention.tombstone,
            entry,
        }
    }
}
