//! Finds out what became of an attempt that nobody answered: by sending the same request again, or
//! by asking.

use std::{panic::AssertUnwindSafe, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use hapax_core::{
    AnswerMeaning, Recovery,
    limits::RETRY_ATTEMPTS_MAX,
    retry::{Backoff, Failure, Jitter, Next, Schedule},
};
use http::{HeaderMap, Response, StatusCode, header::RETRY_AFTER, response};
use tokio::time::{Instant, sleep, timeout};

use crate::{
    body::Body,
    http_service::HttpService,
    server::{
        calls::judged_status,
        execution::{
            body_capture::Captured,
            failed_attempt::FailedAttempt,
            probe::{ProbeAnswer, ProbeRequest},
            service_call::{ServiceResponse, produce},
            status_meaning::{ResultPolicy, is_not_now, meaning},
            unit::{AttemptRun, WaitingClient},
        },
        options::Protection,
        requests::caller_signals::CallerSignals,
    },
};

/// What one turn came to.
pub(crate) enum RecoveryTurn {
    /// It is known how the operation ended.
    Known(Result<ServiceResponse, FailedAttempt>),
    /// It is not, and another turn may tell.
    Doubt {
        failed: FailedAttempt,
        /// How long the service asked to be left alone.
        pause_min: Duration,
    },
}

impl RecoveryTurn {
    /// The same turn: that nothing was sent now says nothing about the owner before.
    pub(crate) fn of_an_owner_before(self) -> Self {
        match self {
            Self::Doubt {
                failed: FailedAttempt::NotStarted | FailedAttempt::TooLate,
                pause_min,
            } => Self::Doubt { failed: FailedAttempt::NotRecovered, pause_min },
            turn @ (Self::Known(_) | Self::Doubt { .. }) => turn,
        }
    }

    fn doubt(failed: FailedAttempt) -> Self {
        Self::Doubt { failed, pause_min: Duration::ZERO }
    }
}

/// Whether an earlier sending may have had the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EarlierAttempt {
    Nothing,
    Unknown,
}

/// How long after nothing can be at work any more an operation is still asked about by whoever
/// waited for that.
const ASKED_WHEN_QUIET: Duration = Duration::from_secs(15);

impl AttemptRun {
    /// Whether this attempt goes on by itself until it is known what happened.
    pub(crate) fn recovers(&self, before: EarlierAttempt) -> bool {
        // At most once means that there is no second attempt, whatever its key.
        if self.protection.results == ResultPolicy::AtMostOnce {
            return false;
        }
        match self.permit.record().recovery {
            Recovery::Resend => !self.protection.recover_for.is_zero(),
            // Whoever follows an owner stays until a "no" counts: given up earlier, the wait for
            // that would begin anew with everybody who asks.
            Recovery::Probe => {
                let has_time =
                    !self.protection.recover_for.is_zero() || before == EarlierAttempt::Unknown;
                self.protection.probe.is_some() && has_time
            }
            Recovery::Hold => false,
        }
    }

    /// Sends the request; after an attempt of unknown fate it asks first, where that is the way.
    pub(crate) async fn turn<Inner>(
        &mut self,
        inner: Inner,
        said: CallerSignals,
        before: EarlierAttempt,
    ) -> RecoveryTurn
    where
        Inner: HttpService,
    {
        if before == EarlierAttempt::Unknown && self.permit.record().recovery == Recovery::Probe {
            let was_quiet = self.quiet_at.is_none_or(|at| Instant::now() >= at);
            let probed = self.probe().await;
            self.permit.note_probe(in_words(&probed, was_quiet));
            match probed {
                ProbeAnswer::Happened(response) => {
                    return RecoveryTurn::Known(Ok(self.told(response)));
                }
                ProbeAnswer::DidNotHappen if was_quiet => {}
                ProbeAnswer::DidNotHappen | ProbeAnswer::AtWork | ProbeAnswer::Unknown => {
                    return RecoveryTurn::doubt(FailedAttempt::NotRecovered);
                }
            }
        }
        // Without a lease somebody else may be at work, and may have been told the same.
        if self.permit.lease_left().is_zero() {
            return match before {
                EarlierAttempt::Nothing => RecoveryTurn::Known(Err(FailedAttempt::NotStarted)),
                EarlierAttempt::Unknown => RecoveryTurn::doubt(FailedAttempt::NotRecovered),
            };
        }
        // Every sending has a fence of its own.
        if self.is_sent && !self.permit.next_attempt().await {
            return RecoveryTurn::doubt(FailedAttempt::NotRecovered);
        }
        let recovers = self.recovers(before);
        let request = self.marked_request(recovers);
        let produced = produce(inner, request, said, &self.protection).await;
        self.is_sent = !matches!(produced, Err(FailedAttempt::NotStarted | FailedAttempt::TooLate));
        if self.is_sent && recovers {
            self.quiet_at = Some(Instant::now() + self.permit.policy().works_for());
        }
        self.judge(produced, before)
    }

    /// What one sending tells about the operation.
    fn judge(
        &self,
        produced: Result<ServiceResponse, FailedAttempt>,
        before: EarlierAttempt,
    ) -> RecoveryTurn {
        let answer = match (produced, before) {
            (Ok(answer), _) => answer,
            (Err(failed @ (FailedAttempt::Unanswered | FailedAttempt::TimedOut)), _)
            | (
                Err(failed @ (FailedAttempt::NotStarted | FailedAttempt::TooLate)),
                EarlierAttempt::Unknown,
            ) => {
                return RecoveryTurn::doubt(failed);
            }
            (Err(failed), _) => return RecoveryTurn::Known(Err(failed)),
        };
        let parts = &answer.parts;
        let failed = match (self.meaning(parts), before) {
            (_, EarlierAttempt::Unknown) if is_not_now(parts) => FailedAttempt::NotRecovered,
            (
                AnswerMeaning::Inconclusive | AnswerMeaning::TakenForNotDone,
                EarlierAttempt::Unknown,
            ) => FailedAttempt::NotRecovered,
            (AnswerMeaning::Inconclusive, EarlierAttempt::Nothing) if self.recovers(before) => {
                FailedAttempt::Unanswered
            }
            (_, _) => return RecoveryTurn::Known(Ok(answer)),
        };
        RecoveryTurn::Doubt { failed, pause_min: retry_after(parts) }
    }

    /// What a complete answer says about the operation.
    pub(crate) fn meaning(&self, parts: &response::Parts) -> AnswerMeaning {
        self.meaning_of(judged_status(parts), &parts.headers)
    }

    fn meaning_of(&self, status: StatusCode, headers: &HeaderMap) -> AnswerMeaning {
        meaning(status, headers, self.protection.results, self.permit.policy().recovery())
    }

    /// Takes turns until it is known what happened, or the time for it is over. Whoever is sent
    /// something again is told that it is repeated here.
    pub(crate) async fn find_out<Inner>(
        &mut self,
        inner: Inner,
        unknown: FailedAttempt,
        pause_min: Duration,
        client: &mut WaitingClient,
    ) -> RecoveryTurn
    where
        Inner: HttpService,
    {
        let (began, schedule) = (Instant::now(), schedule());
        let Protection { timeout, recover_for, grpc_timeout, .. } = *self.protection;
        let mut failure = Failure {
            attempt: 1,
            previous: Duration::ZERO,
            told: told(pause_min),
            left: self.time_left(began + recover_for),
        };
        while let Next::Wait(pause) = schedule.next(failure, fastrand::u64(..)) {
            client.meanwhile(unknown, sleep(pause)).await;
            let said = CallerSignals::repeating(timeout, grpc_timeout);
            let turn = self.turn(inner.clone(), said, EarlierAttempt::Unknown);
            match client.meanwhile(unknown, turn).await {
                known @ RecoveryTurn::Known(_) => return known,
                RecoveryTurn::Doubt { failed, pause_min } => {
                    tracing::debug!(code = failed.code().code(), "still unknown what happened");
                    if self.permit.record().recovery == Recovery::Probe {
                        client.tell_if_later_than(unknown, self.quiet_at);
                    }
                    failure = Failure {
                        attempt: failure.attempt + 1,
                        previous: pause,
                        told: told(pause_min),
                        left: self.time_left(began + recover_for),
                    };
                }
            }
        }
        RecoveryTurn::Doubt { failed: unknown, pause_min: Duration::ZERO }
    }

    /// How long it is looked after by itself. Who may ask stays until a "no" counts, and hears it.
    fn time_left(&self, recover_until: Instant) -> Duration {
        let until = match self.permit.record().recovery {
            Recovery::Probe => self
                .quiet_at
                .map_or(recover_until, |quiet_at| recover_until.max(quiet_at + ASKED_WHEN_QUIET)),
            Recovery::Resend | Recovery::Hold => recover_until,
        };
        until.saturating_duration_since(Instant::now())
    }

    async fn probe(&self) -> ProbeAnswer {
        let Some(prober) = &self.protection.probe else { return ProbeAnswer::Unknown };
        let (operation, id) = (self.permit.record().operation.clone(), self.permit.attempt().id);
        let asking = prober.ask(ProbeRequest { operation, request: self.request.clone() });
        let probed = timeout(self.protection.timeout, AssertUnwindSafe(asking).catch_unwind());
        match probed.await {
            Ok(Ok(ProbeAnswer::Happened(response))) if !self.keeps(&response) => {
                let why = "a prober's answer is one the policy does not keep; not believed";
                tracing::error!(operation = %id, "{why}");
                ProbeAnswer::Unknown
            }
            Ok(Ok(probed)) => probed,
            Ok(Err(_)) | Err(_) => {
                tracing::warn!(operation = %id, "a prober panicked or took too long");
                ProbeAnswer::Unknown
            }
        }
    }

    /// Whether this answer would be stored. One that frees the key would have the effect repeated.
    fn keeps(&self, response: &Response<Bytes>) -> bool {
        self.meaning_of(response.status(), response.headers()).is_final()
    }

    fn told(&self, response: Response<Bytes>) -> ServiceResponse {
        let (parts, body) = response.into_parts();
        let body = if body.len() > self.protection.response_bytes_max {
            Captured::Larger { read: body, rest: Body::empty() }
        } else {
            Captured::Whole(body)
        };
        ServiceResponse { parts, body }
    }
}

/// What a prober said, and whether that counts.
fn in_words(probed: &ProbeAnswer, was_quiet: bool) -> &'static str {
    match (probed, was_quiet) {
        (ProbeAnswer::Happened(_), _) => "it happened",
        (ProbeAnswer::DidNotHappen, true) => "it did not happen",
        (ProbeAnswer::DidNotHappen, false) => {
            "it had not happened yet, and what was sent might still be at work"
        }
        (ProbeAnswer::AtWork, _) => "it is at work",
        (ProbeAnswer::Unknown, _) => "no answer, or none that tells",
    }
}

pub(crate) fn retry_after(parts: &response::Parts) -> Duration {
    let seconds = parts.headers.get(RETRY_AFTER).and_then(|wait| wait.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

/// What a service asked for, if it did.
fn told(pause_min: Duration) -> Option<Duration> {
    (!pause_min.is_zero()).then_some(pause_min)
}

/// Pauses that double from 100 ms to 5 s, at least half of each; time ends it, not their number.
fn schedule() -> Schedule {
    let backoff = Backoff {
        jitter: Jitter::Equal,
        base: Duration::from_millis(100),
        cap: Duration::from_secs(5),
    };
    Schedule::new(backoff, RETRY_ATTEMPTS_MAX).unwrap_or_default()
}
