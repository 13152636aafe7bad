//! An operation arrives: ask the cache, then those already busy with it, then the store.

use std::{sync::Arc, time::Duration};

use hapax_core::{
    Arrival, Decision, Difference, Doubt, Fingerprint, Operation, Policy, Record, Recovery,
    RequestParts, RunMode, StoreError, Timestamp, apply, decide,
    limits::CLAIM_ROUNDS_MAX,
    store::{Claim, Entry, Settlement, Written},
};
use tokio::time::sleep;

use crate::{
    detached_task::Detached,
    engine::{Inner, Shared},
    error::BeginError,
    in_flight::{Boarding, InFlightEntry, InFlightGuard, InFlightPhase},
    permit::{Followed, Permit, settle_as_seen},
    queued_operation::Queued,
};

/// Somebody asks for an operation.
///
/// ```
/// use hapax_core::{Key, Operation, Policy, Recovery, RequestParts, RunMode, Scope, Tenant};
/// use hapax_engine::BeginRequest;
///
/// let (tenant, scope) = (Tenant::parse("acme")?, Scope::parse("payments")?);
/// let ask = BeginRequest {
///     operation: Operation::new(tenant, scope, Key::parse("order-17")?),
///     request: RequestParts { body: b"100", ..RequestParts::default() }.into(),
///     mode: RunMode::Run { request: None },
///     policy: Policy::default().recovering(Recovery::Resend),
/// };
/// # drop(ask);
/// # Ok::<(), hapax_core::InvalidName>(())
/// ```
#[derive(Debug, Clone)]
pub struct BeginRequest<'a> {
    /// Which operation.
    pub operation: Operation,
    /// With which request.
    pub request: RequestIdentity<'a>,
    /// Whether to run now or to queue, and what to keep so that somebody else can finish it.
    pub mode: RunMode,
    /// How it is treated.
    pub policy: Policy,
}

/// What makes two requests for an operation the same.
///
/// ```
/// use hapax_core::RequestParts;
/// use hapax_engine::RequestIdentity;
///
/// let parts = RequestParts { body: b"100", ..RequestParts::default() };
/// assert!(matches!(RequestIdentity::from(parts), RequestIdentity::Parts(_)));
/// ```
#[derive(Debug, Clone, Copy)]
pub enum RequestIdentity<'a> {
    /// These parts of it, of which the engine makes the fingerprint.
    Parts(RequestParts<'a>),
    /// A fingerprint that was made with [`Engine::tenant_keys`](crate::Engine::tenant_keys).
    Fingerprint(Fingerprint),
}

impl<'a> From<RequestParts<'a>> for RequestIdentity<'a> {
    fn from(parts: RequestParts<'a>) -> Self {
        Self::Parts(parts)
    }
}

impl From<Fingerprint> for RequestIdentity<'_> {
    fn from(fingerprint: Fingerprint) -> Self {
        Self::Fingerprint(fingerprint)
    }
}

/// What becomes of an operation that was asked for.
///
/// ```
/// use hapax_core::{AttemptEnd, Outcome, Recovery};
/// use hapax_engine::{Admission, SettleError};
///
/// async fn told(admission: Admission) -> Result<String, SettleError> {
///     Ok(match admission {
///         Admission::Execute(permit)
///         | Admission::TakenOver { permit, recovery: Recovery::Resend } => {
///             permit.settle(AttemptEnd::completed(Outcome::bare(201))).await?;
///             "done".to_owned()
///         }
///         Admission::Replay(record) => format!("done before, at {}", record.changed_at),
///         Admission::Busy { lease_left, .. } => format!("ask again in {lease_left:?}"),
///         Admission::Mismatch(_) => "the key was used for another request".to_owned(),
///         other => format!("{other:?}"),
///     })
/// }
/// ```
#[derive(Debug)]
pub enum Admission {
    /// Run it.
    Execute(Permit),
    /// Its owner is gone: recover it as told.
    TakenOver {
        /// The right to do so.
        permit: Permit,
        /// [`Recovery::Resend`] or [`Recovery::Probe`].
        recovery: Recovery,
    },
    /// It is accepted, and will be run.
    Queued(Queued),
    /// It is finished: answer with the stored outcome.
    Replay(Arc<Record>),
    /// Somebody is at work, or it waits for a worker.
    Busy {
        /// How long the present lease lasts.
        lease_left: Duration,
        /// How long ago the present attempt began, or began to wait for a worker.
        at_work: Duration,
    },
    /// Nobody knows whether it happened, and nobody may try.
    InDoubt {
        /// Why that is unknown.
        doubt: Doubt,
    },
    /// The key was used for another request.
    Mismatch(Difference),
    /// The key was used, and its outcome is past retention.
    Gone {
        /// When the outcome expired.
        since: Timestamp,
    },
}

/// Answers without the store, or asks it detached from the caller.
pub(crate) async fn begin(
    shared: &Arc<Shared>,
    ask: &BeginRequest<'_>,
) -> Result<Admission, BeginError> {
    let inner = &shared.inner;
    if inner.is_stopping() {
        return Err(BeginError::Stopped);
    }
    let arrival = Arrival {
        operation: ask.operation.clone(),
        fingerprint: match ask.request {
            RequestIdentity::Parts(parts) => {
                inner.tenant_keys.get(ask.operation.tenant()).fingerprint(&parts)
            }
            RequestIdentity::Fingerprint(fingerprint) => fingerprint,
        },
        owner: inner.new_owner(),
        mode: ask.mode.clone(),
    };
    let begun = match from_cache(inner, &arrival, &ask.policy) {
        Some(begun) => Ok(begun),
        None => {
            let work = ask_around(Arc::clone(shared), arrival, ask.policy);
            Detached::new(work, give_back_unused).await
        }
    };
    inner.count(&begun);
    begun
}

/// The caller left before it heard that it may run: whoever asks next may.
fn give_back_unused(begun: Result<Admission, BeginError>) {
    if let Ok(Admission::Execute(permit) | Admission::TakenOver { permit, .. }) = begun {
        tokio::spawn(permit.give_back());
    }
}

fn from_cache(inner: &Inner, arrival: &Arrival, policy: &Policy) -> Option<Admission> {
    let clock = || inner.clock.now_for_retention();
    let (record, now) = inner.cache.get(arrival.operation.id(), clock)?;
    inner.counters.replays_from_cache.one();
    without_store(now, arrival, &record, policy)
}

/// What can be answered from a record alone; `None` if the store must be asked.
fn without_store(
    now: Timestamp,
    arrival: &Arrival,
    record: &Arc<Record>,
    policy: &Policy,
) -> Option<Admission> {
    match decide(now, arrival, Some(record), policy) {
        Decision::Replay => Some(Admission::Replay(Arc::clone(record))),
        Decision::Mismatch(difference) => Some(Admission::Mismatch(difference)),
        Decision::Busy { until } => Some(Admission::Busy {
            lease_left: until.after(now),
            at_work: now.after(record.changed_at),
        }),
        Decision::InDoubt { doubt } => Some(Admission::InDoubt { doubt }),
        Decision::Gone { since } => Some(Admission::Gone { since }),
        Decision::Execute(_) | Decision::TakeOver { .. } | Decision::GiveUp => None,
    }
}

async fn ask_around(
    shared: Arc<Shared>,
    arrival: Arrival,
    policy: Policy,
) -> Result<Admission, BeginError> {
    let flights = &shared.inner.flights;
    loop {
        let flight = match flights.board(arrival.operation.id()) {
            Boarding::First(seat) => return claim(&shared, &arrival, policy, seat).await,
            Boarding::Beside(flight) => flight,
        };
        flight.claimed().await;
        if let Some(begun) = beside(&shared.inner, &arrival, &policy, &flight) {
            return Ok(begun);
        }
        if let Some(seat) = flights.board_over(arrival.operation.id(), &flight) {
            return claim(&shared, &arrival, policy, seat).await;
        }
    }
}

/// What those busy with the operation here can answer for it.
fn beside(
    inner: &Inner,
    arrival: &Arrival,
    policy: &Policy,
    flight: &InFlightEntry,
) -> Option<Admission> {
    let record = match flight.phase() {
        InFlightPhase::Running { record, .. } | InFlightPhase::Landed { record: Some(record) } => {
            record
        }
        InFlightPhase::Claiming | InFlightPhase::Landed { record: None } => return None,
    };
    without_store(inner.clock.now_for(&record)?, arrival, &record, policy)
}

/// Decides with the store, again whenever another writer was faster.
async fn claim(
    shared: &Arc<Shared>,
    arrival: &Arrival,
    policy: Policy,
    seat: InFlightGuard,
) -> Result<Admission, BeginError> {
    let inner = &shared.inner;
    let (mut now, mut found) = (Timestamp::ZERO, None::<Box<Record>>);
    let mut has_looked = false;
    for _ in 0..CLAIM_ROUNDS_MAX {
        let (claim, following) = match decide(now, arrival, found.as_deref(), &policy) {
            Decision::Execute(claim) => (claim, None),
            Decision::TakeOver { claim, recovery, quiet_from } => {
                (claim, Some((recovery, quiet_from)))
            }
            Decision::GiveUp => {
                (now, found) = give_up(inner, found).await?;
                continue;
            }
            Decision::Replay
            | Decision::Busy { .. }
            | Decision::InDoubt { .. }
            | Decision::Mismatch(_)
            | Decision::Gone { .. } => {
                let record = land(inner, seat, found);
                return without_store(now, arrival, &record, &policy).ok_or(BeginError::Contended);
            }
        };
        let written = match write(inner, &claim, &policy).await {
            // Nothing was asked yet. What is there is answered from as ever; what is not is not run.
            Err(BeginError::Quarantined) if !has_looked => {
                has_looked = true;
                let loaded = inner.load(arrival.operation.id()).await?;
                if loaded.record.is_none() {
                    return Err(BeginError::Quarantined);
                }
                (now, found) = (loaded.now, loaded.record);
                continue;
            }
            written => written?,
        };
        match written {
            Written::Done { now } => {
                let record = Arc::new(won(now, found.as_deref(), &claim));
                inner.acknowledged.add(&record);
                let shared = Arc::clone(shared);
                return Ok(match (&claim.entry, following) {
                    (Entry::Queue { .. }, _) => {
                        drop(seat);
                        Admission::Queued(Queued::new(shared, record, claim.over, policy))
                    }
                    (Entry::Run { .. }, None) => {
                        let followed = Followed::nobody(claim.over);
                        Admission::Execute(Permit::new(shared, seat, record, followed, policy))
                    }
                    (Entry::Run { .. }, Some((recovery, quiet_from))) => {
                        let followed = Followed::owner(claim.over, quiet_from, found.as_deref());
                        let permit = Permit::new(shared, seat, record, followed, policy);
                        Admission::TakenOver { permit, recovery }
                    }
                });
            }
            Written::Refused { now: heard, record } => (now, found) = (heard, record),
        }
    }
    Err(BeginError::Contended)
}

/// Leaves the seat with what was found, for the cache and for those who wait beside it.
fn land(inner: &Inner, seat: InFlightGuard, found: Option<Box<Record>>) -> Arc<Record> {
    #[expect(clippy::expect_used, reason = "the machine answers from a record only if given one")]
    let record = Arc::new(*found.expect("an answer from a record has that record"));
    inner.cache.offer(&record);
    seat.land(Some(Arc::clone(&record)));
    record
}

/// Marks an abandoned record in doubt, and reads what is there then.
async fn give_up(
    inner: &Arc<Inner>,
    found: Option<Box<Record>>,
) -> Result<(Timestamp, Option<Box<Record>>), BeginError> {
    let Some(record) = found else { return Ok((Timestamp::ZERO, None)) };
    settle_as_seen(inner, &record, Settlement::InDoubt(Doubt::OwnerVanished)).await?;
    let loaded = inner.load(record.operation.id()).await?;
    Ok((loaded.now, loaded.record))
}

/// Writes a claim, reading again if it is not clear whether it was written. What is found comes with
/// the instant by which it is judged.
pub(crate) async fn write(
    inner: &Arc<Inner>,
    claim: &Claim,
    policy: &Policy,
) -> Result<Written, BeginError> {
    inner.know_clock().await?;
    inner.know_incarnation().await?;
    match inner.commit_claim(claim.clone()).await? {
        Err(StoreError::Unconfirmed(cause)) => {
            inner.counters.unconfirmed.one();
            match confirm(inner, claim).await {
                Some(claimed) => Ok(claimed),
                None => {
                    inner.release_later(claim, policy);
                    Err(BeginError::Store(StoreError::Unconfirmed(cause)))
                }
            }
        }
        // A write thought lost can arrive late: what is found may be our own claim.
        Ok(Written::Refused { record: Some(record), .. }) if is_claimed_by(&record, claim) => {
            Ok(Written::Done { now: record.changed_at })
        }
        Ok(Written::Refused { now, record: Some(record) }) => {
            let now = inner.clock.judges(&record, now);
            Ok(Written::Refused { now, record: Some(record) })
        }
        answer => Ok(answer?),
    }
}

/// Reads whether a claim was written; `None` if the store does not say in time.
pub(crate) async fn confirm(inner: &Inner, claim: &Claim) -> Option<Written> {
    for pause in CONFIRM_PAUSES {
        sleep(pause).await;
        let Ok(loaded) = inner.load(claim.operation.id()).await else { continue };
        let ours = loaded.record.as_ref().is_some_and(|record| is_claimed_by(record, claim));
        return Some(match loaded.record {
            Some(record) if ours => Written::Done { now: record.changed_at },
            record => Written::Refused { now: loaded.now, record },
        });
    }
    None
}

const CONFIRM_PAUSES: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(20),
    Duration::from_millis(100),
    Duration::from_millis(500),
];

fn is_claimed_by(record: &Record, claim: &Claim) -> bool {
    record.owner == claim.owner && record.fence == claim.fence && !record.tag().is_terminal()
}

/// The record as the store has just written it.
pub(crate) fn won(now: Timestamp, found: Option<&Record>, claim: &Claim) -> Record {
    #[expect(clippy::expect_used, reason = "a store that grants more breaks the contract")]
    apply::claim(now, found, claim).expect("a store grants only what the machine would")
}
