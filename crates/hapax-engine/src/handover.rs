//! Leaving an operation unfinished: its life goes on, in another attempt.

use std::{sync::Arc, time::Duration};

use hapax_core::{
    Attempt, OperationId, Record, Recovery, StoreError, Timestamp, apply,
    limits::LEASE_MAX,
    store::{Over, Renew, Write, Written},
};
use tokio::time::{Instant, sleep};

use crate::{
    engine::Inner,
    error::SettleError,
    permit::{HeldPermit, PAUSE_MAX, PAUSE_MIN, Settled},
};

/// How long an operation whose steps have begun is left alone where another would be released.
pub const STEPS_PAUSE: Duration = Duration::from_secs(1);

/// Whether giving back leaves the record as it was found. What the owner before has finished must
/// not be forgotten, as a release would have it.
pub(crate) fn is_left_not_released(over: Over, recovery: Recovery) -> bool {
    over.follows_an_owner() && recovery == Recovery::Resend
}

/// The last renewal, after which whoever comes next takes over.
pub(crate) fn left_for(attempt: &Attempt, pause: Duration) -> Renew {
    let Attempt { id, fence, owner } = *attempt;
    Renew { id, fence, owner, lease: pause.min(LEASE_MAX) }
}

/// Whether an end that releases, or that leaves a server error to be found out about, may be written.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ReleaseRule {
    /// It may, or it is no such end.
    AsTold,
    /// Only if no step of this life is kept.
    WithoutSteps,
    /// It would forget steps that have begun.
    Never,
}

impl ReleaseRule {
    pub(crate) async fn is_allowed(self, inner: &Inner, id: OperationId) -> bool {
        match self {
            Self::AsTold => true,
            Self::WithoutSteps => inner.store.steps(id).await.is_ok_and(|steps| steps.is_empty()),
            Self::Never => false,
        }
    }
}

/// Writes the last renewal of an attempt, and leaves its seat.
pub(crate) async fn leave(
    held: HeldPermit,
    begun: Arc<Record>,
    last: Renew,
) -> Result<Settled, SettleError> {
    let inner = &held.shared.inner;
    let left = match write_leave(inner, &last).await {
        Ok(Some(now)) => Ok(apply::renew(now, Some(&begun), &last)),
        Ok(None) => Err(inner.load(last.id).await.ok().and_then(|loaded| loaded.record)),
        Err(error) => {
            tracing::warn!(operation = %last.id, %error, "an operation is left to its lease");
            held.seat.land(None);
            return Err(error);
        }
    };
    Ok(match left {
        Ok(record) => {
            let record = Arc::new(record.unwrap_or_else(|| Record::clone(&begun)));
            held.seat.land(Some(Arc::clone(&record)));
            Settled::Done(record)
        }
        Err(record) => {
            inner.counters.settles_lost.one();
            let record = record.map(|record| Arc::new(*record));
            held.seat.land(record.clone());
            Settled::Superseded(record)
        }
    })
}

/// Writes the last renewal of an attempt: when it was, or `None` if the attempt is over already.
pub(crate) async fn write_leave(
    inner: &Arc<Inner>,
    last: &Renew,
) -> Result<Option<Timestamp>, SettleError> {
    let give_up_at = Instant::now() + inner.options.settle_patience;
    let mut pause = PAUSE_MIN;
    loop {
        let failed = match inner.commit(Write::Renew(*last)).await {
            Ok(Written::Done { now }) => return Ok(Some(now)),
            Ok(Written::Refused { .. }) => return Ok(None),
            Err(error @ (StoreError::Damaged(_) | StoreError::TooNew(_))) => {
                return Err(SettleError::Unreadable(error));
            }
            Err(error @ (StoreError::Unavailable(_) | StoreError::Unconfirmed(_))) => error,
        };
        if Instant::now() >= give_up_at {
            return Err(SettleError::NotRecorded(failed));
        }
        sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
