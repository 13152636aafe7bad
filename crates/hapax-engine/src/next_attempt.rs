//! An owner follows itself: the next fence for another sending, or back into the queue.

use std::{sync::Arc, time::Duration};

use hapax_core::{
    Policy, Record, StateTag, StoreError,
    limits::CLAIM_ROUNDS_MAX,
    store::{Claim, Entry, Over, Written},
};

use crate::{
    begin::{confirm, won},
    error::SettleError,
    in_flight::InFlightPhase,
    permit::{HeldPermit, Settled},
};

/// What came of it.
pub(crate) enum Again {
    /// The operation is claimed anew, over what it was.
    Claimed { record: Arc<Record>, over: Over },
    /// The record is somebody else's, finished, or gone.
    Superseded(Option<Arc<Record>>),
}

/// Claims over the owner's own record, which goes on with the same life. A renewal in between makes
/// another stamp of the same attempt.
pub(crate) async fn again(
    held: &HeldPermit,
    begun: &Arc<Record>,
    policy: &Policy,
    entry: Entry,
) -> Result<Again, SettleError> {
    let inner = &held.shared.inner;
    let mut seen = match held.seat.flight().phase() {
        InFlightPhase::Running { record, .. } => record,
        InFlightPhase::Claiming | InFlightPhase::Landed { .. } => Arc::clone(begun),
    };
    let not_written = |cause| SettleError::NotRecorded(cause);
    for _ in 0..CLAIM_ROUNDS_MAX {
        let over = Over::Abandoned(seen.stamp());
        let claim = Claim {
            operation: seen.operation.clone(),
            fingerprint: seen.fingerprint,
            over,
            fence: seen.fence.next(),
            owner: inner.new_owner(),
            recovery: seen.recovery,
            retention: policy.retention().window,
            tombstone: seen.tombstone,
            entry: entry.clone(),
        };
        let committed = inner.commit_claim(claim.clone()).await;
        let claimed = match committed.map_err(|not_queued| not_written(not_queued.into()))? {
            Err(error @ StoreError::Unconfirmed(_)) => {
                inner.counters.unconfirmed.one();
                confirm(inner, &claim).await.ok_or_else(|| not_written(error))?
            }
            Err(error @ StoreError::Unavailable(_)) => return Err(not_written(error)),
            Err(error @ (StoreError::Damaged(_) | StoreError::TooNew(_))) => {
                return Err(SettleError::Unreadable(error));
            }
            Ok(claimed) => claimed,
        };
        match claimed {
            Written::Done { now } => {
                let record = Arc::new(won(now, Some(&seen), &claim));
                inner.acknowledged.add(&record);
                return Ok(Again::Claimed { record, over });
            }
            Written::Refused { record: Some(found), .. } if is_still_ours(&found, begun) => {
                seen = Arc::new(*found);
            }
            Written::Refused { record, .. } => {
                return Ok(Again::Superseded(record.map(|record| Arc::new(*record))));
            }
        }
    }
    Err(not_written(StoreError::unavailable("others were in the way")))
}

/// Whether the record is as its owner left it, but for its lease.
fn is_still_ours(found: &Record, begun: &Record) -> bool {
    found.fence == begun.fence && found.owner == begun.owner && found.tag() == StateTag::Running
}

/// Puts the operation back into the queue and leaves its seat.
pub(crate) async fn queue_again(
    held: HeldPermit,
    begun: Arc<Record>,
    policy: Policy,
    pause: Duration,
) -> Result<Settled, SettleError> {
    let Some(request) = begun.request().cloned() else {
        let missing = StoreError::unavailable("an operation without its request cannot be queued");
        return Err(SettleError::NotRecorded(missing));
    };
    let queued = again(&held, &begun, &policy, Entry::Queue { pick_up: pause, request }).await;
    let inner = &held.shared.inner;
    match queued {
        Ok(Again::Claimed { record, .. }) => {
            inner.counters.queued_again.one();
            held.shared.pick_up_later(record.operation.id(), pause);
            held.seat.land(Some(Arc::clone(&record)));
            Ok(Settled::Done(record))
        }
        Ok(Again::Superseded(record)) => {
            inner.counters.settles_lost.one();
            held.seat.land(record.clone());
            Ok(Settled::Superseded(record))
        }
        Err(error) => {
            let id = begun.operation.id();
            tracing::error!(operation = %id, %error, "an accepted operation is left to its lease");
            held.seat.land(None);
            Err(error)
        }
    }
}
