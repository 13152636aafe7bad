//! One run of a workflow, to its end or to its next pause.

use std::{error::Error, panic::AssertUnwindSafe, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use hapax_core::{
    Difference, Doubt, Ended, Fence, Key, Operation, Outcome, Record, Store, Timestamp,
};

use super::{call::StepCall, error::WorkflowError, handle::Steps, workflow::Workflow};
use crate::{
    error::SettleError,
    permit::{Permit, Settled},
};

/// What a workflow is given: its operation, the request it came with, and its steps.
#[derive(Debug)]
pub struct Run<S: Store> {
    operation: Operation,
    request: Bytes,
    steps: Steps<S>,
}

impl<S: Store> Run<S> {
    /// Runs an effect, unless its result is kept already: see [`Steps::step`].
    pub fn step<'a, T, E, F, Fut>(&'a self, name: &'a str, run: F) -> StepCall<'a, S, T, E, F>
    where
        F: FnMut(Key) -> Fut,
        Fut: Future<Output = Result<T, E>>,
    {
        self.steps.step(name, run)
    }

    /// Which operation.
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// The request it came with, as it was brought first.
    pub fn request(&self) -> &Bytes {
        &self.request
    }

    /// Its steps, for code that is handed no run.
    pub fn steps(&self) -> &Steps<S> {
        &self.steps
    }
}

/// What became of an operation that was brought to [`Workflows::run`](super::Workflows::run).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ran {
    /// It ran here, and answered this.
    Answered(Outcome),
    /// It had run before, and answered this.
    Replayed(Outcome),
    /// It is not finished, and goes on by itself: ask again after this pause.
    Later {
        /// How long.
        after: Duration,
    },
    /// Somebody is at work on it.
    Busy {
        /// How long the present lease lasts.
        lease_left: Duration,
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

/// Runs the workflow under this permit, and writes down how far it came.
pub(super) async fn perform<S: Store>(
    workflow: &Workflow<S>,
    permit: Permit<S>,
) -> Result<Ran, SettleError> {
    let record = permit.record();
    let run = Run {
        operation: record.operation.clone(),
        request: record.request().cloned().unwrap_or_default(),
        steps: permit.steps(),
    };
    let work = async { (workflow.work)(run).await };
    let ended = AssertUnwindSafe(work).catch_unwind().await;
    let ended = ended.unwrap_or_else(|_| Err(WorkflowError::later("the workflow panicked")));
    let fence = permit.attempt().fence;
    match ended {
        Ok(outcome) => {
            let settled = permit.settle(Ended::Answered(outcome.clone())).await?;
            Ok(match settled {
                Settled::Done(_) => Ran::Answered(outcome),
                Settled::Superseded(record) => superseded(record.as_deref()),
            })
        }
        Err(WorkflowError::Superseded) => Ok(left(permit.leave(Duration::ZERO).await?)),
        Err(WorkflowError::Later { after, cause }) => {
            let is_over = permit.is_past_retention();
            log(&permit, &*cause, is_over);
            if is_over {
                let told = Outcome::bare(504);
                return Ok(left(permit.settle(Ended::Unanswered { told }).await?));
            }
            let after = after.unwrap_or_else(|| pause(fence));
            Ok(match permit.leave(after).await? {
                Settled::Done(_) => Ran::Later { after },
                Settled::Superseded(record) => superseded(record.as_deref()),
            })
        }
    }
}

/// With every cause behind the cause: the last one is what a person has to mend.
fn log<S: Store>(permit: &Permit<S>, cause: &(dyn Error + Send + Sync + 'static), is_over: bool) {
    let (attempt, error) = (permit.attempt(), cause as &(dyn Error + 'static));
    let (id, fence) = (attempt.id, attempt.fence.get());
    tracing::warn!(operation = %id, fence, error, is_over, "a workflow stopped half-way");
}

const PAUSE_MIN: Duration = Duration::from_secs(1);
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(5 * 60);

/// Doubles with every attempt.
fn pause(fence: Fence) -> Duration {
    let doublings = u32::try_from(fence.get() - 1).unwrap_or(u32::MAX).min(16);
    PAUSE_MIN.saturating_mul(1 << doublings).min(PAUSE_MAX)
}

fn left(settled: Settled) -> Ran {
    match settled {
        Settled::Done(record) => superseded(Some(&record)),
        Settled::Superseded(record) => superseded(record.as_deref()),
    }
}

/// What to tell about an operation that is no longer ours.
pub(super) fn superseded(record: Option<&Record>) -> Ran {
    let outcome = record.and_then(Record::outcome).cloned();
    match (outcome, record.map(|record| &record.state)) {
        (Some(outcome), _) => Ran::Replayed(outcome),
        (None, Some(hapax_core::State::InDoubt { doubt, .. })) => Ran::InDoubt { doubt: *doubt },
        (None, _) => Ran::Busy { lease_left: Duration::ZERO },
    }
}
