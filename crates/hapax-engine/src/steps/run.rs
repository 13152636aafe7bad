//! One run of a workflow, to its end or to its next pause.

use std::{error::Error, panic::AssertUnwindSafe, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use hapax_core::{
    AttemptAnswer, AttemptEnd, Difference, Doubt, Fence, Key, Operation, Outcome, Record, Timestamp,
};

use super::{call::StepCall, error::WorkflowError, handle::Steps, workflow::Workflow};
use crate::{
    error::SettleError,
    permit::{Permit, Settled},
};

/// What a workflow is given: its operation, the request it came with, and its steps.
///
/// ```
/// use hapax_core::{AttemptAnswer, Outcome};
/// use hapax_engine::{Run, WorkflowError};
///
/// # async fn charge(_: hapax_core::Key, _: usize) -> Result<u32, std::io::Error> { Ok(7) }
/// async fn pay(run: Run) -> Result<AttemptAnswer, WorkflowError> {
///     let cents = run.request().len();
///     run.step("charge", |key| charge(key, cents)).await?;
///     Ok(AttemptAnswer::completed(Outcome::bare(201)))
/// }
///
/// let payments = hapax_engine::Workflows::new().on("payments", Default::default(), pay);
/// # drop(payments);
/// ```
#[derive(Debug)]
pub struct Run {
    operation: Operation,
    request: Bytes,
    steps: Steps,
}

impl Run {
    /// Runs an effect, unless its result is kept already: see [`Steps::step`].
    pub fn step<'a, T, E, F, Fut>(&'a self, name: &'a str, run: F) -> StepCall<'a, T, E, F>
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
    pub fn steps(&self) -> &Steps {
        &self.steps
    }
}

/// What became of an operation that was brought to [`Workflows::run`](super::Workflows::run).
///
/// ```
/// use hapax_engine::Ran;
///
/// fn told(ran: &Ran) -> String {
///     match ran {
///         Ran::Answered(_) | Ran::Replayed(_) => "done".to_owned(),
///         Ran::Later { after } => format!("it goes on by itself; ask again in {after:?}"),
///         Ran::Busy { lease_left } => format!("somebody is at work, for {lease_left:?}"),
///         other => format!("{other:?}"),
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ran {
    /// It ran here, and answered this.
    Answered(AttemptAnswer),
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
pub(super) async fn perform(workflow: &Workflow, permit: Permit) -> Result<Ran, SettleError> {
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
        Ok(answer) => {
            let settled = permit.settle(AttemptEnd::Answered(answer.clone())).await?;
            Ok(match settled {
                Settled::Done(_) => Ran::Answered(answer),
                Settled::Superseded(record) => superseded(record.as_deref()),
            })
        }
        Err(WorkflowError::Superseded) => Ok(left(permit.leave(Duration::ZERO).await?)),
        Err(WorkflowError::Later { after, cause }) => {
            let is_over = permit.is_past_retention();
            log(&permit, &*cause, is_over);
            if is_over {
                return Ok(left(permit.settle(AttemptEnd::Unanswered).await?));
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
fn log(permit: &Permit, cause: &(dyn Error + Send + Sync + 'static), is_over: bool) {
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
