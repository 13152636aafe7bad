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
    /// It answered, completely, and that is final whatever the policy makes of such answers: its
    /// client was told that it will be done, and nobody is there to ask again.
    Final(Outcome),
    /// Nothing was sent, so nothing happened.
    NothingSent {
        /// What the client is told.
        told: Outcome,
    },
    /// It answered that it did nothing, and will do it when it is asked again.
    NotDone {
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
            (
                Self::NothingSent { told } | Self::NotDone { told },
                Recovery::Probe | Recovery::Hold,
            ) => Self::NotRecovered { told },
            (ended, _) => ended,
        }
    }
}

/// What a complete answer tells about the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// It is what became of the operation.
    Conclusive,
    /// It was not done: "not now", "not you", "ask again".
    NotDone,
    /// It counts as not done, but nobody can be sure: an error of a service that can neither be asked
    /// nor deduplicates.
    TakenForNotDone,
    /// It says nothing about the operation: somebody between us and the service answered in its
    /// place, or the service failed in mid-work.
    Inconclusive,
}

/// Reads a complete answer under a policy. `asks_to_wait`: it says when to come back
/// (`Retry-After`).
pub fn evidence(status: u16, asks_to_wait: bool, policy: &Policy) -> Evidence {
    match (status, policy.results()) {
        (425, _) => Evidence::NotDone,
        (503, _) if asks_to_wait => Evidence::NotDone,
        (_, ResultPolicy::AtMostOnce) | (200..300, _) => Evidence::Conclusive,
        (401 | 403 | 408 | 413 | 429, _) => Evidence::NotDone,
        (_, ResultPolicy::Stripe) | (..500, ResultPolicy::Terminal) => Evidence::Conclusive,
        (..500, ResultPolicy::SuccessOnly) => Evidence::NotDone,
        (502 | 504 | 520..=527 | 600.., _) => Evidence::Inconclusive,
        (500.., _) => match policy.recovery() {
            Recovery::Resend | Recovery::Probe => Evidence::Inconclusive,
            Recovery::Hold => Evidence::TakenForNotDone,
        },
    }
}

/// What the answer to an operation means whose client was told that it will be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AcceptedEnd {
    /// What it means for any other.
    AsUsual,
    /// It was not done yet: it is tried again.
    Again,
    /// It was refused, and asking again would not help.
    Final,
    /// Nobody knows whether it was done, and nobody is there who could decide to ask again.
    Doubt,
}

/// Decides what an answer means for an accepted operation, which is never given back: there is
/// nobody who would ask for it again.
pub fn accepted(status: u16, told: Evidence) -> AcceptedEnd {
    match (told, status) {
        (Evidence::Conclusive | Evidence::Inconclusive, _) => AcceptedEnd::AsUsual,
        // 502 and 504 are not done only if somebody further in says so, who knows the key.
        (Evidence::NotDone | Evidence::TakenForNotDone, 408 | 409 | 425 | 429 | 502..=504) => {
            AcceptedEnd::Again
        }
        (Evidence::NotDone, _) => AcceptedEnd::Final,
        (Evidence::TakenForNotDone, _) => AcceptedEnd::Doubt,
    }
}

/// Decides what the end of an attempt means under a policy, as the fenced write that says so.
pub fn settle(attempt: &Attempt, ended: Ended, policy: &Policy) -> Settle {
    let by = By::Owner { fence: attempt.fence, owner: attempt.owner };
    match (meaning(ended, policy), attempt.fence) {
        (Settlement::Declined, Fence::FIRST) => declined(attempt, policy),
        (Settlement::Declined, _) => {
            let keep = policy.kept_after_settling();
            Settle { id: attempt.id, by, to: Settlement::Released, keep }
        }
        (to, _) => Settle { id: attempt.id, by, to, keep: policy.kept_after_settling() },
    }
}

/// The end of the first attempt there ever was, which did nothing. It is remembered for a lease, so
/// that nobody who was told to wait is taken for somebody new at once, and then forgotten.
fn declined(attempt: &Attempt, policy: &Policy) -> Settle {
    let by = By::Owner { fence: attempt.fence, owner: attempt.owner };
    Settle { id: attempt.id, by, to: Settlement::Declined, keep: policy.lease() }
}

fn meaning(ended: Ended, policy: &Policy) -> Settlement {
    match (ended, policy.results()) {
        (Ended::Answered(outcome), _) => {
            match evidence(outcome.status(), outcome.asks_to_wait(), policy) {
                Evidence::Conclusive => stored(outcome),
                Evidence::NotDone => Settlement::Declined,
                Evidence::TakenForNotDone => Settlement::Released,
                Evidence::Inconclusive => Settlement::InDoubt(Doubt::Unanswered),
            }
        }
        (Ended::Final(outcome), _) => stored(outcome),
        (Ended::NotDone { .. }, _) => Settlement::Declined,
        (
            Ended::NothingSent { told }
            | Ended::Unanswered { told }
            | Ended::Interrupted { told }
            | Ended::NotRecovered { told },
            ResultPolicy::AtMostOnce,
        ) => Settlement::Failed(told),
        (Ended::NothingSent { .. }, _) => Settlement::Declined,
        (Ended::Unanswered { .. }, _) => Settlement::InDoubt(Doubt::Unanswered),
        (Ended::Interrupted { .. }, _) => Settlement::InDoubt(Doubt::Interrupted),
        (Ended::NotRecovered { .. }, _) => Settlement::InDoubt(Doubt::OwnerVanished),
    }
}

/// The write of an owner that gives its right back before it began anything.
///
/// `over` is what it claimed over. After an owner whose fate is unknown and must be asked for,
/// giving back leaves the doubt; otherwise the next arrival may run it.
pub fn give_back(attempt: &Attempt, over: Over, recovery: Recovery, policy: &Policy) -> Settle {
    let by = By::Owner { fence: attempt.fence, owner: attempt.owner };
    let write = |to| Settle { id: attempt.id, by, to, keep: Duration::ZERO };
    match recovery {
        Recovery::Probe | Recovery::Hold if over.follows_an_owner() => {
            write(Settlement::InDoubt(Doubt::OwnerVanished))
        }
        Recovery::Resend | Recovery::Probe | Recovery::Hold if over == Over::Nothing => {
            declined(attempt, policy)
        }
        Recovery::Resend | Recovery::Probe | Recovery::Hold => write(Settlement::Released),
    }
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
///
/// Whoever takes over under [`Recovery::Probe`] asks at once, and believes that nothing happened only
/// after [`quiet_from`](crate::decide::quiet_from).
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
