//! An operation arrives: ask the cache, then those already busy with it, then the store.

use std::{sync::Arc, time::Duration};

use hapax_core::{
    Arrival, Decision, Difference, Doubt, Fingerprint, Operation, Policy, Record, Recovery, Store,
    StoreError, Timestamp, Wish, apply, decide,
    limits::CLAIM_ROUNDS_MAX,
    store::{Claim, Claimed, Entry, Settlement},
};
use tokio::time::sleep;

use crate::{
    detached::Detached,
    engine::{Inner, Shared},
    error::BeginError,
    flights::{Boarding, Flight, Phase, Seat},
    permit::{Followed, Permit, settle_as_seen},
    queued::Queued,
};

/// Somebody asks for an operation.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Which operation.
    pub operation: Operation,
    /// With which request.
    pub fingerprint: Fingerprint,
    /// Whether to run now or to queue, and what to keep so that somebody else can finish it.
    pub wish: Wish,
    /// How it is treated.
    pub policy: Policy,
}

/// What becomes of an operation that was asked for.
#[derive(Debug)]
pub enum Begun<S: Store> {
    /// Run it.
    Execute(Permit<S>),
    /// Its owner is gone: recover it as told.
    TakenOver {
        /// The right to do so.
        permit: Permit<S>,
        /// [`Recovery::Resend`] or [`Recovery::Probe`].
        recovery: Recovery,
    },
    /// It is accepted, and will be run.
    Queued(Queued<S>),
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
pub(crate) async fn begin<S: Store>(
    shared: &Arc<Shared<S>>,
    ask: &Ask,
) -> Result<Begun<S>, BeginError> {
    let inner = &shared.inner;
    if inner.is_stopping() {
        return Err(BeginError::Stopped);
    }
    let arrival = Arrival {
        operation: ask.operation.clone(),
        fingerprint: ask.fingerprint,
        owner: inner.new_owner(),
        wish: ask.wish.clone(),
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
fn give_back_unused<S: Store>(begun: Result<Begun<S>, BeginError>) {
    if let Ok(Begun::Execute(permit) | Begun::TakenOver { permit, .. }) = begun {
        tokio::spawn(permit.give_back());
    }
}

fn from_cache<S: Store>(inner: &Inner<S>, arrival: &Arrival, policy: &Policy) -> Option<Begun<S>> {
    let clock = || inner.clock.now_for_retention();
    let (record, now) = inner.cache.get(arrival.operation.id(), clock)?;
    inner.counters.replays_from_cache.one();
    without_store(now, arrival, &record, policy)
}

/// What can be answered from a record alone; `None` if the store must be asked.
fn without_store<S: Store>(
    now: Timestamp,
    arrival: &Arrival,
    record: &Arc<Record>,
    policy: &Policy,
) -> Option<Begun<S>> {
    match decide(now, arrival, Some(record), policy) {
        Decision::Replay => Some(Begun::Replay(Arc::clone(record))),
        Decision::Mismatch(difference) => Some(Begun::Mismatch(difference)),
        Decision::Busy { until } => Some(Begun::Busy {
            lease_left: until.after(now),
            at_work: now.after(record.changed_at),
        }),
        Decision::InDoubt { doubt } => Some(Begun::InDoubt { doubt }),
        Decision::Gone { since } => Some(Begun::Gone { since }),
        Decision::Execute(_) | Decision::TakeOver { .. } | Decision::GiveUp => None,
    }
}

async fn ask_around<S: Store>(
    shared: Arc<Shared<S>>,
    arrival: Arrival,
    policy: Policy,
) -> Result<Begun<S>, BeginError> {
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
fn beside<S: Store>(
    inner: &Inner<S>,
    arrival: &Arrival,
    policy: &Policy,
    flight: &Flight,
) -> Option<Begun<S>> {
    let record = match flight.phase() {
        Phase::Running { record, .. } | Phase::Landed { record: Some(record) } => record,
        Phase::Claiming | Phase::Landed { record: None } => return None,
    };
    without_store(inner.clock.now_for(&record)?, arrival, &record, policy)
}

/// Decides with the store, again whenever another writer was faster.
async fn claim<S: Store>(
    shared: &Arc<Shared<S>>,
    arrival: &Arrival,
    policy: Policy,
    seat: Seat,
) -> Result<Begun<S>, BeginError> {
    let inner = &shared.inner;
    let (mut now, mut found) = (Timestamp::ZERO, None::<Box<Record>>);
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
        match write(inner, &claim, &policy).await? {
            Claimed::Won { now } => {
                let record = Arc::new(won(now, found.as_deref(), &claim));
                let shared = Arc::clone(shared);
                return Ok(match (&claim.entry, following) {
                    (Entry::Queue { .. }, _) => {
                        drop(seat);
                        Begun::Queued(Queued::new(shared, record, claim.over, policy))
                    }
                    (Entry::Run { .. }, None) => {
                        let followed = Followed::nobody(claim.over);
                        Begun::Execute(Permit::new(shared, seat, record, followed, policy))
                    }
                    (Entry::Run { .. }, Some((recovery, quiet_from))) => {
                        let followed = Followed::owner(claim.over, quiet_from, found.as_deref());
                        let permit = Permit::new(shared, seat, record, followed, policy);
                        Begun::TakenOver { permit, recovery }
                    }
                });
            }
            Claimed::Found { now: heard, record } => (now, found) = (heard, record),
        }
    }
    Err(BeginError::Contended)
}

/// Leaves the seat with what was found, for the cache and for those who wait beside it.
fn land<S: Store>(inner: &Inner<S>, seat: Seat, found: Option<Box<Record>>) -> Arc<Record> {
    #[expect(clippy::expect_used, reason = "the machine answers from a record only if given one")]
    let record = Arc::new(*found.expect("an answer from a record has that record"));
    inner.cache.offer(&record);
    seat.land(Some(Arc::clone(&record)));
    record
}

/// Marks an abandoned record in doubt, and reads what is there then.
async fn give_up<S: Store>(
    inner: &Arc<Inner<S>>,
    found: Option<Box<Record>>,
) -> Result<(Timestamp, Option<Box<Record>>), BeginError> {
    let Some(record) = found else { return Ok((Timestamp::ZERO, None)) };
    settle_as_seen(inner, &record, Settlement::InDoubt(Doubt::OwnerVanished)).await?;
    let loaded = inner.load(record.operation.id()).await?;
    Ok((loaded.now, loaded.record))
}

/// Writes a claim, reading again if it is not clear whether it was written. What is found comes with
/// the instant by which it is judged.
pub(crate) async fn write<S: Store>(
    inner: &Arc<Inner<S>>,
    claim: &Claim,
    policy: &Policy,
) -> Result<Claimed, BeginError> {
    inner.know_clock().await?;
    match inner.commit_claim(claim.clone()).await.ok_or(BeginError::Overloaded)? {
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
        Ok(Claimed::Found { record: Some(record), .. }) if is_claimed_by(&record, claim) => {
            Ok(Claimed::Won { now: record.changed_at })
        }
        Ok(Claimed::Found { now, record: Some(record) }) => {
            let now = inner.clock.judges(&record, now);
            Ok(Claimed::Found { now, record: Some(record) })
        }
        answer => Ok(answer?),
    }
}

/// Reads whether a claim was written; `None` if the store does not say in time.
pub(crate) async fn confirm<S: Store>(inner: &Inner<S>, claim: &Claim) -> Option<Claimed> {
    for pause in CONFIRM_PAUSES {
        sleep(pause).await;
        let Ok(loaded) = inner.load(claim.operation.id()).await else { continue };
        let ours = loaded.record.as_ref().is_some_and(|record| is_claimed_by(record, claim));
        return Some(match loaded.record {
            Some(record) if ours => Claimed::Won { now: record.changed_at },
            record => Claimed::Found { now: loaded.now, record },
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
