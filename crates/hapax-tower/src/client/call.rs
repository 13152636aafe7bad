//! One request on its way through its attempts.

use std::{sync::Arc, time::Duration};

use hapax_core::retry::{
    AttemptHistory, AttemptVerdict, Cost, Deadline, Failure, Next, Pass, Schedule, Withdrawn,
};
use http::{Request, Response, request};

use super::{
    attempt::EndedAttempt,
    buffered_body::Whole,
    destination::DestinationState,
    error::RetryError,
    key,
    options::{Patience, RetryOptions},
    try_report::{StopReason, Tried},
    watch::{PursuitEvent, Watch},
};
use crate::{Body, signal};

/// A request, what is known about it, and what it has used up.
pub(super) struct RetriedCall {
    pub(super) outgoing: OutgoingRequest,
    pub(super) key: Option<key::OfRequest>,
    pub(super) reads_only: bool,
    pub(super) history: AttemptHistory,
    pub(super) deadline: Deadline,
    pub(super) schedule: Schedule,
    pub(super) patience: Patience,
    pub(super) watch: Option<Arc<dyn Watch>>,
    pub(super) tally: CallTally,
}

/// What is sent, as often as it may be.
pub(super) enum OutgoingRequest {
    Again(request::Parts, Whole),
    Once(Option<Request<Body>>),
}

/// What a call has used up.
#[derive(Debug, Default)]
pub(super) struct CallTally {
    sent: u32,
    failures: u32,
    /// The pause before the last attempt.
    pause: Duration,
    withdrawn: Option<Withdrawn>,
    /// What the next attempt costs, as long as the budget cannot pay for it.
    owed: Option<Cost>,
}

/// An attempt that may set out.
pub(super) struct AttemptStart {
    pub(super) request: Request<Body>,
    pub(super) time: Duration,
    pub(super) pass: Pass,
}

/// An attempt needs this much time: what is told downstream has no finer unit.
const TIME_MIN: Duration = Duration::from_millis(1);

impl RetriedCall {
    /// The next attempt, if there is time for it, it is paid for, and the destination's breaker lets
    /// it through.
    pub(super) fn start(
        &mut self,
        options: &RetryOptions,
        destination: &DestinationState,
        now: Duration,
    ) -> Result<AttemptStart, StopReason> {
        let time = self.deadline.left(now).min(options.attempt_timeout);
        if time < TIME_MIN {
            return Err(StopReason::DeadlineTooNear);
        }
        if let Some(cost) = self.tally.owed {
            self.pay(cost, destination, now)?;
        }
        let admitted = destination.breaker.admit(now, fastrand::u64(..));
        let pass = admitted.map_err(|refused| StopReason::BreakerOpen { wait: refused.wait })?;
        let mut request = self.outgoing.next().ok_or(StopReason::NotRepeatable)?;
        signal::set_time_left(request.headers_mut(), time);
        if options.grpc_timeout {
            signal::set_grpc_time_left(request.headers_mut(), time);
        }
        self.tally.sent += 1;
        self.tell(PursuitEvent::Begun { attempt: self.tally.sent, limit: time });
        Ok(AttemptStart { request, time, pass })
    }

    /// What follows an attempt: a pause, paid for before it begins, or the end.
    pub(super) fn follow(
        &mut self,
        ended: &EndedAttempt,
        destination: &DestinationState,
        now: Duration,
    ) -> Result<Duration, StopReason> {
        self.history.note(ended.answer.result, ended.evidence);
        self.tell(PursuitEvent::Ended {
            attempt: self.tally.sent,
            result: ended.answer.result,
            status: ended.result.as_ref().map(Response::status).ok(),
            error: ended.result.as_ref().err(),
        });
        let (next, retry) = match ended.answer.verdict() {
            AttemptVerdict::Success => {
                destination.budget.succeed(self.tally.withdrawn);
                return Err(StopReason::Answered);
            }
            AttemptVerdict::Never | AttemptVerdict::Unknown => return Err(StopReason::Answered),
            AttemptVerdict::Retry | AttemptVerdict::Wait if !self.outgoing.is_left() => {
                return Err(StopReason::NotRepeatable);
            }
            AttemptVerdict::Retry => (self.after_failure(ended, now), Some(ended.cost)),
            AttemptVerdict::Wait => (self.while_in_flight(ended, now), None),
        };
        let pause = match next {
            Next::Wait(pause) => pause,
            Next::GiveUp(why) => return Err(why.into()),
        };
        if let Some(cost) = retry {
            match (self.pay(cost, destination, now), self.patience) {
                (Ok(()), _) => {}
                (Err(stop), Patience::None) => return Err(stop),
                (Err(_), Patience::UntilDeadline) => self.tally.owed = Some(cost),
            }
        }
        self.tally.pause = pause;
        self.tell(PursuitEvent::Pausing { attempt: self.tally.sent, pause });
        Ok(pause)
    }

    /// How long to wait for what stands in the way of the next attempt, if this call does.
    pub(super) fn outwait(&self, stop: StopReason, now: Duration) -> Option<Duration> {
        let told = match (self.patience, stop) {
            (Patience::UntilDeadline, StopReason::BreakerOpen { wait }) => Some(wait),
            (Patience::UntilDeadline, StopReason::BudgetUsedUp) => None,
            (
                Patience::None | Patience::UntilDeadline,
                StopReason::Answered
                | StopReason::NotRepeatable
                | StopReason::AttemptsUsedUp
                | StopReason::DeadlineTooNear
                | StopReason::BudgetUsedUp
                | StopReason::BreakerOpen { .. },
            ) => return None,
        };
        match self.schedule.until_finished(told, self.deadline.left(now), fastrand::u64(..)) {
            Next::Wait(pause) => {
                self.tell(PursuitEvent::Pausing { attempt: self.tally.sent, pause });
                Some(pause)
            }
            Next::GiveUp(_) => None,
        }
    }

    /// The end: the last response if there is one, and what it all came to.
    pub(super) fn end(
        self,
        stop: StopReason,
        last: Option<EndedAttempt>,
    ) -> Result<Response<Body>, RetryError> {
        let tried = Tried {
            key: self.key.as_ref().map(key::OfRequest::text),
            attempts: self.tally.sent,
            replayed: last.as_ref().is_some_and(|ended| ended.answer.replayed),
            conclusion: self.history.conclusion(),
            stop,
        };
        match last.map(|ended| ended.result) {
            Some(Ok(mut response)) => {
                response.extensions_mut().insert(tried);
                Ok(response)
            }
            Some(Err(error)) => Err(RetryError::after(tried, Some(error))),
            None => Err(RetryError::after(tried, None)),
        }
    }

    fn after_failure(&mut self, ended: &EndedAttempt, now: Duration) -> Next {
        self.tally.failures += 1;
        let failure = Failure {
            attempt: self.tally.failures,
            previous: self.tally.pause,
            told: ended.answer.told,
            left: self.deadline.left(now),
        };
        self.schedule.next(failure, fastrand::u64(..))
    }

    fn while_in_flight(&self, ended: &EndedAttempt, now: Duration) -> Next {
        let left = self.deadline.left(now);
        self.schedule.until_finished(ended.answer.told, left, fastrand::u64(..))
    }

    fn pay(
        &mut self,
        cost: Cost,
        destination: &DestinationState,
        now: Duration,
    ) -> Result<(), StopReason> {
        let withdrawn =
            destination.budget.withdraw(now, cost).map_err(|_| StopReason::BudgetUsedUp)?;
        self.tally.withdrawn = Some(withdrawn);
        self.tally.owed = None;
        Ok(())
    }

    fn tell(&self, event: PursuitEvent<'_>) {
        if let Some(watch) = &self.watch {
            watch.saw(event);
        }
    }
}

impl OutgoingRequest {
    fn next(&mut self) -> Option<Request<Body>> {
        match self {
            Self::Again(parts, whole) => Some(Request::from_parts(parts.clone(), whole.body())),
            Self::Once(request) => request.take(),
        }
    }

    /// Whether it may be sent once more.
    fn is_left(&self) -> bool {
        match self {
            Self::Again(..) => true,
            Self::Once(request) => request.is_some(),
        }
    }
}
