//! How an attempt ended without a complete answer, and what that means.

use std::time::Duration;

use hapax_core::{AttemptEnd, OperationId};

use crate::server::{
    execution::status_meaning::ResultPolicy,
    layer::Site,
    requests::caller_signals,
    responses::{answer, code::Code, problem::Problem},
};

/// How an attempt ended without a complete answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FailedAttempt {
    /// Nothing was sent.
    NotStarted,
    /// The caller's time was over before anything was sent.
    TooLate,
    /// It was sent, and the answer failed or broke off.
    Unanswered,
    Panicked,
    TimedOut,
    /// What became of an earlier attempt could not be found out.
    NotRecovered,
}

impl FailedAttempt {
    pub(crate) fn code(self) -> Code {
        match self {
            Self::NotStarted => Code::ExecutionNotStarted,
            Self::TooLate => Code::DeadlinePassed,
            Self::Unanswered => Code::ExecutionUnanswered,
            Self::Panicked => Code::ExecutionPanicked,
            Self::TimedOut => Code::ExecutionTimedOut,
            Self::NotRecovered => Code::OutcomeInDoubt,
        }
    }

    pub(crate) fn problem(self, id: OperationId) -> Problem {
        match self {
            Self::NotStarted => Problem::new(self.code(), "Nothing was run. Ask again.")
                .retry_after(Duration::from_secs(1)),
            Self::TooLate => caller_signals::too_late(),
            Self::Unanswered | Self::Panicked | Self::TimedOut => {
                Problem::new(self.code(), "Nobody knows whether the operation happened.")
            }
            Self::NotRecovered => answer::in_doubt(id),
        }
    }

    /// What a client hears that cannot wait until it is known.
    pub(crate) fn while_finding_out(self, id: OperationId) -> Problem {
        let detail = "Nobody knows yet whether the operation happened. That is being found out: \
                      ask again with the same key.";
        // Not in doubt: that would tell the client to stop asking.
        let code = if self == Self::NotRecovered { Code::KeyInFlight } else { self.code() };
        Problem::new(code, detail).operation(id).retry_after(Duration::from_secs(5))
    }

    /// What a client hears that repeats by itself: the next request finds out.
    pub(crate) fn left_to_the_next(self, id: OperationId, pause: Duration) -> Problem {
        let detail = "Nobody knows whether the operation happened. Asking again with the same key \
                      finds out.";
        match self {
            Self::NotStarted
            | Self::TooLate
            | Self::Unanswered
            | Self::Panicked
            | Self::TimedOut => {
                let problem = Problem::new(self.code(), detail).operation(id);
                if pause.is_zero() { problem } else { problem.retry_after(pause) }
            }
            // Not in doubt: that would tell the client to stop asking.
            Self::NotRecovered => Problem::new(Code::KeyInFlight, detail)
                .operation(id)
                .retry_after(pause.max(answer::TRY_AGAIN)),
        }
    }

    /// What it means. At most once has no second attempt: what the client hears is the end.
    pub(crate) fn end(self, id: OperationId, site: &Site, results: ResultPolicy) -> AttemptEnd {
        if results == ResultPolicy::AtMostOnce {
            return AttemptEnd::failed(self.problem(id).to_outcome(site));
        }
        match self {
            Self::NotStarted | Self::TooLate => AttemptEnd::NothingSent,
            Self::Unanswered => AttemptEnd::Unanswered,
            Self::Panicked | Self::TimedOut => AttemptEnd::Interrupted,
            Self::NotRecovered => AttemptEnd::NotRecovered,
        }
    }
}
