//! Finds out what became of an attempt that nobody answered: by sending the same request again, or
//! by asking.

use std::{panic::AssertUnwindSafe, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use hapax_core::{
    Evidence, Policy, Recovery, ResultPolicy, Store, evidence,
    limits::RETRY_ATTEMPTS_MAX,
    retry::{Backoff, Failure, Jitter, Next, Schedule},
};
use http::{Response, StatusCode, header::RETRY_AFTER, response};
use tokio::time::{Instant, sleep, timeout};

use super::{
    capture::Captured,
    failed::Failed,
    inner_words::{Worth, worth},
    options::Protection,
    probe::{Asked, Probed},
    produce::{Answer, produce},
    said::Said,
    unit::{Client, Unit},
};
use crate::{body::Body, http_service::HttpService};

/// What one turn came to.
pub(crate) enum Turn {
    /// It is known how the operation ended.
    Known(Result<Answer, Failed>),
    /// It is not, and another turn may tell.
    Doubt {
        failed: Failed,
        /// How long the service asked to be left alone.
        pause_min: Duration,
    },
}

impl Turn {
    /// The same turn: that nothing was sent now says nothing about the owner before.
    pub(crate) fn of_an_owner_before(self) -> Self {
        match self {
            Self::Doubt { failed: Failed::NotStarted | Failed::TooLate, pause_min } => {
                Self::Doubt { failed: Failed::NotRecovered, pause_min }
            }
            turn @ (Self::Known(_) | Self::Doubt { .. }) => turn,
        }
    }

    fn doubt(failed: Failed) -> Self {
        Self::Doubt { failed, pause_min: Duration::ZERO }
    }
}

/// Whether an earlier sending may have had the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    Nothing,
    Unknown,
}

/// How long after nothing can be at work any more an operation is still asked about by whoever
/// waited for that.
const ASKED_WHEN_QUIET: Duration = Duration::from_secs(15);

impl<S: Store> Unit<S> {
    /// Whether this attempt goes on by itself until it is known what happened.
    pub(crate) fn recovers(&self, before: Before) -> bool {
        // At most once means that there is no second attempt, whatever its key.
        if self.protection.policy.results() == ResultPolicy::AtMostOnce {
            return false;
        }
        match self.permit.record().recovery {
            Recovery::Resend => !self.protection.recover_for.is_zero(),
            // Whoever follows an owner stays until a "no" counts: given up earlier, the wait for
            // that would begin anew with everybody who asks.
            Recovery::Probe => {
                let has_time = !self.protection.recover_for.is_zero() || before == Before::Unknown;
                self.protection.probe.is_some() && has_time
            }
            Recovery::Hold => false,
        }
    }

    /// Sends the request; after an attempt of unknown fate it asks first, where that is the way.
    pub(crate) async fn turn<Inner>(&mut self, inner: Inner, said: Said, before: Before) -> Turn
    where
        Inner: HttpService,
    {
        if before == Before::Unknown && self.permit.record().recovery == Recovery::Probe {
            let was_quiet = self.quiet_at.is_none_or(|at| Instant::now() >= at);
            match self.probe().await {
                Probed::Happened(response) => return Turn::Known(Ok(self.told(response))),
                Probed::DidNotHappen if was_quiet => {}
                Probed::DidNotHappen | Probed::AtWork | Probed::Unknown => {
                    return Turn::doubt(Failed::NotRecovered);
                }
            }
        }
        // Without a lease somebody else may be at work, and may have been told the same.
        if self.permit.lease_left().is_zero() {
            return match before {
                Before::Nothing => Turn::Known(Err(Failed::NotStarted)),
                Before::Unknown => Turn::doubt(Failed::NotRecovered),
            };
        }
        // Every sending has a fence of its own.
        if self.is_sent && !self.permit.next_attempt().await {
            return Turn::doubt(Failed::NotRecovered);
        }
        let recovers = self.recovers(before);
        let request = self.marked_request(recovers);
        let produced = produce(inner, request, said, &self.protection).await;
        self.is_sent = !matches!(produced, Err(Failed::NotStarted | Failed::TooLate));
        if self.is_sent && recovers {
            self.quiet_at = Some(Instant::now() + self.permit.policy().works_for());
        }
        self.judge(produced, before)
    }

    /// What one sending tells about the operation.
    fn judge(&self, produced: Result<Answer, Failed>, before: Before) -> Turn {
        let answer = match (produced, before) {
            (Ok(answer), _) => answer,
            (Err(failed @ (Failed::Unanswered | Failed::TimedOut)), _)
            | (Err(failed @ (Failed::NotStarted | Failed::TooLate)), Before::Unknown) => {
                return Turn::doubt(failed);
            }
            (Err(failed), _) => return Turn::Known(Err(failed)),
        };
        let parts = &answer.parts;
        let failed = match (self.tells(parts), before) {
            (_, Before::Unknown) if is_not_now(parts) => Failed::NotRecovered,
            (Evidence::Inconclusive | Evidence::TakenForNotDone, Before::Unknown) => {
                Failed::NotRecovered
            }
            (Evidence::Inconclusive, Before::Nothing) if self.recovers(before) => {
                Failed::Unanswered
            }
            (_, _) => return Turn::Known(Ok(answer)),
        };
        Turn::Doubt { failed, pause_min: retry_after(parts) }
    }

    /// What a complete answer says about the operation.
    pub(crate) fn tells(&self, parts: &response::Parts) -> Evidence {
        tells(parts, self.permit.policy())
    }

    /// Takes turns until it is known what happened, or the time for it is over. Whoever is sent
    /// something again is told that it is repeated here.
    pub(crate) async fn find_out<Inner>(
        &mut self,
        inner: Inner,
        unknown: Failed,
        pause_min: Duration,
        client: &mut Client,
    ) -> Turn
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
            let said = Said::repeating(timeout, grpc_timeout);
            let turn = self.turn(inner.clone(), said, Before::Unknown);
            match client.meanwhile(unknown, turn).await {
                known @ Turn::Known(_) => return known,
                Turn::Doubt { failed, pause_min } => {
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
        Turn::Doubt { failed: unknown, pause_min: Duration::ZERO }
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

    async fn probe(&self) -> Probed {
        let Some(prober) = &self.protection.probe else { return Probed::Unknown };
        let (operation, id) = (self.permit.record().operation.clone(), self.permit.attempt().id);
        let asking = prober.ask(Asked { operation, request: self.request.clone() });
        let probed = timeout(self.protection.timeout, AssertUnwindSafe(asking).catch_unwind());
        match probed.await {
            Ok(Ok(Probed::Happened(response))) if !self.keeps(response.status()) => {
                let why = "a prober's answer is one the policy does not keep; not believed";
                tracing::error!(operation = %id, "{why}");
                Probed::Unknown
            }
            Ok(Ok(probed)) => probed,
            Ok(Err(_)) | Err(_) => {
                tracing::warn!(operation = %id, "a prober panicked or took too long");
                Probed::Unknown
            }
        }
    }

    /// Whether this answer would be stored. One that frees the key would have the effect repeated.
    fn keeps(&self, status: StatusCode) -> bool {
        evidence(status.as_u16(), false, self.permit.policy()) == Evidence::Conclusive
    }

    fn told(&self, response: Response<Bytes>) -> Answer {
        let (parts, body) = response.into_parts();
        let body = if body.len() > self.protection.response_bytes_max {
            Captured::Larger { read: body, rest: Body::empty() }
        } else {
            Captured::Whole(body)
        };
        Answer { parts, body }
    }
}

/// What a complete answer says about the operation: by the words of an inner Hapax, or by its status.
fn tells(parts: &response::Parts, policy: &Policy) -> Evidence {
    match worth(parts) {
        Worth::NothingRan => Evidence::NotDone,
        // It is known by its key further in: whoever asks again is told there, and runs nothing twice.
        Worth::Unknown => match policy.recovery() {
            Recovery::Hold => Evidence::NotDone,
            Recovery::Resend | Recovery::Probe => Evidence::Inconclusive,
        },
        Worth::Outcome => {
            let asks_to_wait = parts.headers.contains_key(RETRY_AFTER);
            evidence(parts.status.as_u16(), asks_to_wait, policy)
        }
    }
}

/// Answers to a repeated request that say nothing about the first one: it is still at work, it is
/// too much now, or the credential that was good then is gone.
fn is_not_now(parts: &response::Parts) -> bool {
    matches!(parts.status.as_u16(), 401 | 403 | 408 | 409 | 425 | 429 | 503)
        || worth(parts) != Worth::Outcome
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
