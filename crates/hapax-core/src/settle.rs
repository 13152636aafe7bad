//! An attempt ends: the second half of the machine.

use std::time::Duration;

use crate::{
    operation::OperationId,
    outcome::Outcome,
    policy::{Policy, Recovery},
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

impl Attempt {
    /// Whether this attempt, and no other, was the last to claim this record.
    pub fn owns(&self, record: &Record) -> bool {
        record.owner == self.owner && record.fence == self.fence
    }
}

/// How an attempt ended.
///
/// ```
/// use hapax_core::{AttemptAnswer, AttemptEnd, Outcome};
///
/// let outcome = Outcome::value("paid".into())?;
/// let end = AttemptEnd::completed(outcome.clone());
/// assert_eq!(end, AttemptEnd::Answered(AttemptAnswer::completed(outcome)));
/// # Ok::<(), hapax_core::InvalidOutcome>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptEnd {
    /// It was answered, completely.
    Answered(AttemptAnswer),
    /// Nothing was sent, so nothing happened.
    NothingSent,
    /// It was sent, and no complete answer came back.
    Unanswered,
    /// It panicked or was cut off by its timeout.
    Interrupted,
    /// It took over from an owner that vanished, and could not find out what became of that one.
    NotRecovered,
}

/// A complete answer to an attempt, and what it means.
///
/// Whoever speaks with the service reads the meaning from its answer: the machine stores the
/// outcome, and decides nothing by what is in it.
///
/// ```
/// use hapax_core::{AnswerMeaning, AttemptAnswer, Outcome};
///
/// let paid = AttemptAnswer::completed(Outcome::value("paid".into())?);
/// let stolen = AttemptAnswer::failed(Outcome::value("the card was stolen".into())?);
/// assert!(paid.meaning.is_final() && stolen.meaning == AnswerMeaning::Failed);
/// # Ok::<(), hapax_core::InvalidOutcome>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptAnswer {
    /// What was answered: stored if the operation ended with it, and told to its client in any case.
    pub outcome: Outcome,
    /// What that means for the operation.
    pub meaning: AnswerMeaning,
}

/// What a complete answer means for its operation.
///
/// ```
/// use hapax_core::AnswerMeaning;
///
/// assert!(AnswerMeaning::Failed.is_final());
/// assert!(!AnswerMeaning::NotDone.is_final());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AnswerMeaning {
    /// It was done: this is answered from now on.
    Completed,
    /// It was refused for good: this is answered from now on.
    Failed,
    /// Nothing happened: "not now", "not you", "ask again".
    NotDone,
    /// It counts as not done, but nobody can be sure: an error of a service that can neither be asked
    /// nor deduplicates.
    TakenForNotDone,
    /// Nobody knows: somebody between us and the service answered in its place, or the service failed
    /// in mid-work.
    Inconclusive,
}

impl AnswerMeaning {
    /// Whether the operation ended with the answer, which is stored.
    pub fn is_final(self) -> bool {
        match self {
            Self::Completed | Self::Failed => true,
            Self::NotDone | Self::TakenForNotDone | Self::Inconclusive => false,
        }
    }
}

impl AttemptAnswer {
    /// It was done, and answered this.
    pub fn completed(outcome: Outcome) -> Self {
        Self { outcome, meaning: AnswerMeaning::Completed }
    }

    /// It was refused for good, and answered this.
    pub fn failed(outcome: Outcome) -> Self {
        Self { outcome, meaning: AnswerMeaning::Failed }
    }
}

impl AttemptEnd {
    /// It was done, and answered this.
    pub fn completed(outcome: Outcome) -> Self {
        Self::Answered(AttemptAnswer::completed(outcome))
    }

    /// It was refused for good, and answered this.
    pub fn failed(outcome: Outcome) -> Self {
        Self::Answered(AttemptAnswer::failed(outcome))
    }

    /// The same end, of an attempt that follows an owner whose fate was unknown.
    ///
    /// That this attempt did nothing says nothing about the owner before it: under
    /// [`Recovery::Probe`] the doubt stays, so that the next attempt asks again. Under
    /// [`Recovery::Resend`] whoever comes next sends under the same key anyway.
    #[must_use]
    pub fn following(self, recovery: Recovery) -> Self {
        let did_nothing = match &self {
            Self::NothingSent => true,
            Self::Answered(answer) => answer.meaning == AnswerMeaning::NotDone,
            Self::Unanswered | Self::Interrupted | Self::NotRecovered => false,
        };
        match recovery {
            Recovery::Probe | Recovery::Hold if did_nothing => Self::NotRecovered,
            Recovery::Resend | Recovery::Probe | Recovery::Hold => self,
        }
    }
}

/// Decides what follows from the end of an attempt, as the fenced write that says so.
pub fn settle(attempt: &Attempt, end: AttemptEnd, policy: &Policy) -> Settle {
    let by = By::Owner { fence: attempt.fence, owner: attempt.owner };
    match (settlement(end), attempt.fence) {
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

fn settlement(end: AttemptEnd) -> Settlement {
    match end {
        AttemptEnd::Answered(AttemptAnswer { outcome, meaning }) => match meaning {
            AnswerMeaning::Completed => Settlement::Completed(outcome),
            AnswerMeaning::Failed => Settlement::Failed(outcome),
            AnswerMeaning::NotDone => Settlement::Declined,
            AnswerMeaning::TakenForNotDone => Settlement::Released,
            AnswerMeaning::Inconclusive => Settlement::InDoubt(Doubt::Unanswered),
        },
        AttemptEnd::NothingSent => Settlement::Declined,
        AttemptEnd::Unanswered => Settlement::InDoubt(Doubt::Unanswered),
        AttemptEnd::Interrupted => Settlement::InDoubt(Doubt::Interrupted),
        AttemptEnd::NotRecovered => Settlement::InDoubt(Doubt::OwnerVanished),
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
