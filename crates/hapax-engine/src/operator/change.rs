//! Changes by a person: fenced by what they saw, noted before and after.

use std::time::Duration;

use hapax_core::{
    Deed, Fence, Note, OperationId, Phase, Policy, Reason, Record, State, StateTag, StoreError,
    Timestamp,
    limits::CLAIM_ROUNDS_MAX,
    quiet_from,
    store::{By, Settle, Settlement, Write, Written},
};

use super::{Change, Operator, Resolution};

/// What a person wants changed, and what they saw when they decided it.
///
/// ```
/// use hapax_core::{AttemptEnd, Outcome, Reason, StateTag};
/// use hapax_engine::{Admission, operator::{Operator, Order, Resolution}};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use hapax_core::{Salt, Timestamp, memory};
/// # let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
/// # use hapax_core::{Key, Operation, Scope, Tenant};
/// # let (tenant, scope) = (Tenant::parse("acme")?, Scope::parse("payments")?);
/// # let operation = Operation::new(tenant, scope, Key::parse("order-17")?);
/// # let request = hapax_core::RequestParts { body: b"100", ..Default::default() }.into();
/// # let mode = hapax_core::RunMode::Run { request: None };
/// # let policy = hapax_core::Policy::default();
/// # let ask = hapax_engine::BeginRequest { operation, request, mode, policy };
/// # let engine = hapax_engine::Engine::start(store, hapax_engine::Options::default());
/// let Admission::Execute(permit) = engine.begin(&ask).await? else { return Ok(()) };
/// let attempt = permit.attempt();
/// permit.settle(AttemptEnd::Unanswered).await?;
///
/// let reason = Reason::new("ada", "the bank shows the payment")?;
/// let order = Order { id: attempt.id, seen: attempt.fence, even_if_running: false, reason };
/// let found = Resolution::Completed { outcome: Outcome::bare(201) };
/// let changed = Operator::new(engine.store().clone()).resolve(&order, found).await?;
/// assert_eq!(changed.state, StateTag::Completed);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Order {
    /// Which operation.
    pub id: OperationId,
    /// The fence they saw: another attempt since then, and nothing is changed.
    pub seen: Fence,
    /// Whether to change a record whose owner is, or may be, at work, or to give a key back while
    /// what was sent may be. The owner's own result then counts no more, though its effect may still
    /// happen.
    pub even_if_running: bool,
    /// Who they are, and why they do it.
    pub reason: Reason,
}

/// A change that was written.
#[derive(Debug)]
pub struct Changed {
    /// The instant it was written with.
    pub at: Timestamp,
    /// The state it led to.
    pub state: StateTag,
    /// Whether the note after the change was kept; the one before it was.
    pub noted: Result<(), StoreError>,
}

/// Why a change was not made, or may not have been.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// Nothing was changed, and trying again as before will not help.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// Nothing was changed, because the intention could not be noted.
    #[error("the intention could not be noted, so nothing was changed")]
    NotNoted(#[source] StoreError),
    /// Nothing was changed, because the store could not.
    #[error("the store could not read or write the record; nothing was changed")]
    Store(#[source] StoreError),
    /// It may or may not have been changed. Look at the record before doing anything else.
    #[error("the store did not confirm the change; look at the record before trying again")]
    Unconfirmed(#[source] StoreError),
}

/// Why a person may not change a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such record.
    #[error("nothing is stored under this id")]
    Unknown,
    /// It is finished, and finished records never change.
    #[error("it is {} already, and what is finished never changes", state.as_str())]
    Finished {
        /// The state it is in.
        state: StateTag,
    },
    /// There was another attempt since the person looked.
    #[error("it changed meanwhile: attempt {} was seen, attempt {} is there now", seen.get(), found.get())]
    Changed {
        /// The fence the person saw.
        seen: Fence,
        /// The fence that is there.
        found: Fence,
    },
    /// An owner is, or may be, at work.
    #[error("an owner may be at work on it (its lease lasts another {lease_left:?})")]
    Running {
        /// How long its lease lasts; zero if it is over.
        lease_left: Duration,
    },
    /// What was sent may still be at work: given back now, the operation could happen twice.
    #[error(
        "what was sent may still be at work for {left:?}; given back now, it could happen twice"
    )]
    AtWork {
        /// How long to wait.
        left: Duration,
    },
    /// Others changed it again and again while this was tried.
    #[error("others keep changing it; try again")]
    Contended,
}

impl Operator {
    /// The record the order is about, if this change would be made now. Changes nothing.
    pub async fn examine(&self, order: &Order, change: &Change) -> Result<Record, ChangeError> {
        let to = match change {
            Change::Release => Settlement::Released,
            Change::Resolve(resolution) => resolution.clone().into_change().1,
        };
        self.examine_end(order, &to).await
    }

    async fn examine_end(&self, order: &Order, to: &Settlement) -> Result<Record, ChangeError> {
        let loaded = self.load(order.id).await.map_err(ChangeError::Store)?;
        let Some(record) = loaded.record else { return Err(Refusal::Unknown.into()) };
        check(&record, order, to, loaded.now)?;
        Ok(*record)
    }

    /// Does what the person wants done.
    pub async fn carry_out(&self, order: &Order, change: Change) -> Result<Changed, ChangeError> {
        match change {
            Change::Release => self.release(order).await,
            Change::Resolve(resolution) => self.resolve(order, resolution).await,
        }
    }

    /// Gives the key back: the next arrival executes.
    ///
    /// Right where nothing happened, or where a second effect does no harm.
    pub async fn release(&self, order: &Order) -> Result<Changed, ChangeError> {
        self.change(order, Deed::Release, &Settlement::Released).await
    }

    /// Writes down what a person found out. An outcome is kept for a whole retention window from
    /// now, however old the operation is, so that its client hears of it.
    pub async fn resolve(
        &self,
        order: &Order,
        resolution: Resolution,
    ) -> Result<Changed, ChangeError> {
        let (deed, to) = resolution.into_change();
        self.change(order, deed, &to).await
    }

    async fn change(
        &self,
        order: &Order,
        deed: Deed,
        to: &Settlement,
    ) -> Result<Changed, ChangeError> {
        self.examine_end(order, to).await?;
        self.note(order, deed, Phase::Intended).await.map_err(ChangeError::NotNoted)?;
        let written = self.write(order, to).await;
        let phase = match &written {
            Ok(_) => Phase::Done,
            Err(ChangeError::Refused(_) | ChangeError::NotNoted(_) | ChangeError::Store(_)) => {
                Phase::Refused
            }
            // The intention stays open: nobody knows its end.
            Err(ChangeError::Unconfirmed(_)) => return written.map(|at| changed(at, to, Ok(()))),
        };
        let noted = self.note(order, deed, phase).await;
        if let Err(error) = &noted {
            let error: &dyn std::error::Error = error;
            tracing::warn!(error, operation = %order.id, "the end of a person's change was not noted");
        }
        written.map(|at| changed(at, to, noted))
    }

    /// Writes until it is sure. The lease of a running record may be renewed in between, which makes
    /// another stamp of the same attempt.
    async fn write(&self, order: &Order, to: &Settlement) -> Result<Timestamp, ChangeError> {
        let mut unsure = None;
        for _ in 0..CLAIM_ROUNDS_MAX {
            let loaded = self.load(order.id).await;
            let loaded = loaded.map_err(|error| failed(unsure.clone(), error))?;
            let Some(record) = loaded.record else { return Err(Refusal::Unknown.into()) };
            if unsure.is_some() && is_written(&record, order, to) {
                return Ok(record.changed_at);
            }
            check(&record, order, to, loaded.now)?;
            match self.settle(&record, to).await {
                Ok(Written::Done { now }) => return Ok(now),
                Ok(Written::Refused { .. }) => {}
                Err(error @ StoreError::Unconfirmed(_)) => unsure = Some(error),
                Err(
                    error @ (StoreError::Unavailable(_)
                    | StoreError::Damaged(_)
                    | StoreError::TooNew(_)),
                ) => return Err(failed(unsure, error)),
            }
        }
        Err(unsure.map_or_else(|| Refusal::Contended.into(), ChangeError::Unconfirmed))
    }

    async fn settle(&self, record: &Record, to: &Settlement) -> Result<Written, StoreError> {
        let keep = match to {
            Settlement::Completed(_) | Settlement::Failed(_) => {
                record.expires_at.after(record.created_at)
            }
            Settlement::Released | Settlement::Declined | Settlement::InDoubt(_) => Duration::ZERO,
        };
        let (id, by) = (record.operation.id(), By::Onlooker(record.stamp()));
        let settle = Write::Settle(Settle { id, by, to: to.clone(), keep });
        let unanswered = || Err(StoreError::unconfirmed("the store did not answer for this id"));
        self.store.commit(vec![settle]).await.pop().unwrap_or_else(unanswered)
    }

    async fn note(&self, order: &Order, deed: Deed, phase: Phase) -> Result<(), StoreError> {
        let Order { id, seen, reason, .. } = order;
        let note = Note { id: *id, fence: *seen, deed, phase, reason: reason.clone() };
        self.store.note(note).await
    }
}

/// How long what was sent is taken to be at work, where no route says so.
fn may_be_at_work(record: &Record, to: &Settlement, now: Timestamp) -> Option<Duration> {
    let frees = to.tag() == StateTag::Released && record.tag() == StateTag::InDoubt;
    let left = quiet_from(record, &Policy::default()).after(now);
    (frees && !left.is_zero()).then_some(left)
}

fn check(record: &Record, order: &Order, to: &Settlement, now: Timestamp) -> Result<(), Refusal> {
    let state = record.tag();
    if state.is_terminal() {
        return Err(Refusal::Finished { state });
    }
    if record.fence != order.seen {
        return Err(Refusal::Changed { seen: order.seen, found: record.fence });
    }
    if let (Some(left), false) = (may_be_at_work(record, to, now), order.even_if_running) {
        return Err(Refusal::AtWork { left });
    }
    match record.state {
        State::Running { lease_until, .. } if !order.even_if_running => {
            Err(Refusal::Running { lease_left: lease_until.after(now) })
        }
        State::Running { .. }
        | State::Pending { .. }
        | State::InDoubt { .. }
        | State::Completed { .. }
        | State::Failed { .. }
        | State::Released
        | State::Buried => Ok(()),
    }
}

/// Whether the record is what an unconfirmed write of this order would have left.
fn is_written(record: &Record, order: &Order, to: &Settlement) -> bool {
    record.fence == order.seen && record.tag() == to.tag() && record.outcome() == to.outcome()
}

/// After a write that was not confirmed, a failure cannot say that nothing was changed.
fn failed(unsure: Option<StoreError>, error: StoreError) -> ChangeError {
    unsure.map_or(ChangeError::Store(error), ChangeError::Unconfirmed)
}

fn changed(at: Timestamp, to: &Settlement, noted: Result<(), StoreError>) -> Changed {
    Changed { at, state: to.tag(), noted }
}
