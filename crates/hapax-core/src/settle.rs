//! An attempt ends: the second half of the machine.

use std::time::Duration;

use crate::{
    operation::OperationId,
    outcome::Outcome,
    policy::{Policy, Recovery, ResultPolicy},
    record::{Doubt, Fence, Owner, Record, StateTag},
    store::{By, Over, Settle, Settlement},
};

/// One attempt at an operation: what its owner shows with every write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// Which operation.
    pub id: OperationId,
    /// The attempt's number.
    pub fence: Fence,
    /// The attempt's name.
    pub owner: Owner,
}

/// How an attempt ended.
///
/// Where there was no complete answer, `told` is what the client hears instead; only
/// [`ResultPolicy::AtMostOnce`] stores it.
#[derive(Debug, Clone)]
pub enum Ended {
    /// It answered, completely.
    Answered(Outcome),
    /// Nothing was sent, so nothing happened.
    NothingSent {
        /// What the client is told.
        told: Outcome,
    },
    /// It was sent, and no complete answer came back.
    Unanswered {
        /// What the client is told.
        told: Outcome,
    },
    /// It panicked or was cut off by its timeout.
    Interrupted {
        /// What the client is told.
        told: Outcome,
    },
    /// It took over from an owner that vanished, and could not find out what became of that one.
    NotRecovered {
        /// What the client is told.
        told: Outcome,
    },
}

impl Ended {
    /// The same end, of an attempt that follows an owner whose fate was unknown.
    ///
    /// That this attempt sent nothing says nothing about the owner before it: under
    /// [`Recovery::Probe`] the doubt stays, so that the next attempt asks again. Under
    /// [`Recovery::Resend`] whoever comes next sends under the same key anyway.
    #[must_use]
    pub fn following(self, recovery: Recovery) -> Self {
        match (self, recovery) {
            (Self::NothingSent { told }, Recovery::Probe | Recovery::Hold) => {
                Self::NotRecovered { told }
            }
            (ended, _) => ended,
        }
    }
}

/// Decides what the end of an attempt means under a policy, as the fenced write that says so.
pub fn settle(attempt: &Attempt, ended: Ended, policy: &Policy) -> Settle {
    Settle {
        id: attempt.id,
        by: By::Owner { fence: attempt.fence, owner: attempt.owner },
        to: meaning(ended, policy.results()),
        keep: policy.kept_after_settling(),
    }
}

fn meaning(ended: Ended, results: ResultPolicy) -> Settlement {
    match (ended, results) {
        (Ended::Answered(outcome), ResultPolicy::Terminal) => match outcome.status() {
            status if passes_by_itself(status) => Settlement::Released,
            500.. => Settlement::Released,
            _ => stored(outcome),
        },
        (Ended::Answered(outcome), ResultPolicy::Stripe) => match outcome.status() {
            status if passes_by_itself(status) => Settlement::Released,
            _ => stored(outcome),
        },
        (Ended::Answered(outcome), ResultPolicy::SuccessOnly) => match outcome.status() {
            200..300 => stored(outcome),
            _ => Settlement::Released,
        },
        (Ended::Answered(outcome), ResultPolicy::AtMostOnce) => stored(outcome),
        (
            Ended::NothingSent { told }
            | Ended::Unanswered { told }
            | Ended::Interrupted { told }
            | Ended::NotRecovered { told },
            ResultPolicy::AtMostOnce,
        ) => Settlement::Failed(told),
        (Ended::NothingSent { .. }, _) => Settlement::Released,
        (Ended::Unanswered { .. }, _) => Settlement::InDoubt(Doubt::Unanswered),
        (Ended::Interrupted { .. }, _) => Settlement::InDoubt(Doubt::Interrupted),
        (Ended::NotRecovered { .. }, _) => Settlement::InDoubt(Doubt::OwnerVanished),
    }
}

/// The write of an owner that gives its right back before it began anything.
///
/// `over` is what it claimed over. After an owner whose fate is unknown and must be asked for,
/// giving back leaves the doubt; otherwise the next arrival may run it.
pub fn give_back(attempt: &Attempt, over: Over, recovery: Recovery) -> Settle {
    let to = match recovery {
        Recovery::Probe | Recovery::Hold if over.follows_an_owner() => {
            Settlement::InDoubt(Doubt::OwnerVanished)
        }
        Recovery::Resend | Recovery::Probe | Recovery::Hold => Settlement::Released,
    };
    let by = By::Owner { fence: attempt.fence, owner: attempt.owner };
    Settle { id: attempt.id, by, to, keep: Duration::ZERO }
}

/// Answers that say "not now" or "not you" rather than what became of the operation.
fn passes_by_itself(status: u16) -> bool {
    matches!(status, 401 | 403 | 408 | 413 | 429)
}

fn stored(outcome: Outcome) -> Settlement {
    match outcome.status() {
        ..400 => Settlement::Completed(outcome),
        400.. => Settlement::Failed(outcome),
    }
}

/// What a sweeper does with a record whose owner is overdue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sweep {
    /// Claim it and finish it, as its recovery says.
    TakeOver(Recovery),
    /// Give the key back: whoever retries may run it.
    Release,
    /// Mark it in doubt.
    GiveUp,
    /// Nothing can be done now.
    Leave,
}

/// Decides what a sweeper does with an overdue record. `can_finish`: it has a worker that can
/// take this operation over from its stored request.
pub fn sweep(record: &Record, can_finish: bool) -> Sweep {
    let resumable = can_finish && record.request().is_some();
    match (record.tag(), record.recovery) {
        (StateTag::Pending, _) if resumable => Sweep::TakeOver(Recovery::Resend),
        (StateTag::Pending, _) => Sweep::Leave,
        (StateTag::Running, recovery @ (Recovery::Resend | Recovery::Probe)) if resumable => {
            Sweep::TakeOver(recovery)
        }
        (StateTag::Running, Recovery::Resend) => Sweep::Release,
        (StateTag::Running, Recovery::Probe | Recovery::Hold) => Sweep::GiveUp,
        (
            StateTag::Completed
            | StateTag::Failed
            | StateTag::InDoubt
            | StateTag::Released
            | StateTag::Buried,
            _,
        ) => Sweep::Leave,
    }
}
