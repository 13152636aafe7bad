//! Finds out what became of an attempt that nobody answered: by sending the same request again, or
//! by asking.

use std::{panic::AssertUnwindSafe, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use hapax_core::{
    Ended, Outcome, Recovery, ResultPolicy, Store,
    limits::RETRY_ATTEMPTS_MAX,
    retry::{Backoff, Failure, Jitter, Next, Schedule},
    settle,
    store::Settlement,
};
use http::{Request, Response, header::RETRY_AFTER, response};
use tokio::time::{Instant, sleep, timeout};

use super::{
    capture::Captured,
    failed::Failed,
    inner_words::{Worth, worth},
    options::Protection,
    probe::{Asked, Probed},
    produce::{Answer, produce},
    said::Said,
    unit::Unit,
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

/// Whether an earlier sending may have had the effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    Nothing,
    Unknown,
}

impl<S: Store> Unit<S> {
    /// Whether this attempt goes on by itself until it is known what happened.
    pub(crate) fn recovers(&self) -> bool {
        let can = match self.permit.record().recovery {
            Recovery::Resend => true,
            Recovery::Probe => self.protection.probe.is_some(),
            Recovery::Hold => false,
        };
        // At most once means that there is no second attempt, whatever its key.
        let may = self.protection.policy.results() != ResultPolicy::AtMostOnce;
        can && may && !self.protection.recover_for.is_zero()
    }

    /// Sends the request; after an attempt of unknown fate it asks first, where that is the way.
    pub(crate) async fn turn<Inner>(
        &self,
        inner: Inner,
        request: Request<Bytes>,
        said: Said,
        before: Before,
    ) -> Turn
    where
        Inner: HttpService,
    {
        let doubt = |failed| Turn::Doubt { failed, pause_min: Duration::ZERO };
        if before == Before::Unknown && self.permit.record().recovery == Recovery::Probe {
            match self.probe(&request).await {
                Probed::Happened(response) => return Turn::Known(Ok(self.told(response))),
                Probed::DidNotHappen => {}
                Probed::Unknown => return doubt(Failed::NotRecovered),
            }
        }
        // Without a lease somebody else may be at work, and may have been told the same.
        if before == Before::Unknown && self.permit.lease_left().is_zero() {
            return doubt(Failed::NotRecovered);
        }
        match (produce(inner, request, said, &self.protection).await, before) {
            (Ok(answer), Before::Unknown) if is_not_now(&answer.parts) => {
                Turn::Doubt { failed: Failed::NotRecovered, pause_min: retry_after(&answer.parts) }
            }
            (Ok(answer), Before::Nothing)
                if self.recovers() && worth(&answer.parts) == Worth::Unknown =>
            {
                Turn::Doubt { failed: Failed::Unanswered, pause_min: retry_after(&answer.parts) }
            }
            (Err(failed @ (Failed::Unanswered | Failed::TimedOut)), _)
            | (Err(failed @ (Failed::NotStarted | Failed::TooLate)), Before::Unknown) => {
                doubt(failed)
            }
            (known, _) => Turn::Known(known),
        }
    }

    /// Takes turns until it is known what happened, or the time for it is over. Whoever is sent
    /// something again is told that it is repeated here.
    pub(crate) async fn find_out<Inner>(
        &self,
        inner: Inner,
        request: Request<Bytes>,
        unknown: Failed,
        pause_min: Duration,
    ) -> Result<Answer, Failed>
    where
        Inner: HttpService,
    {
        let (began, schedule) = (Instant::now(), schedule());
        let Protection { timeout, recover_for, grpc_timeout, .. } = *self.protection;
        let mut failure = Failure {
            attempt: 1,
            previous: Duration::ZERO,
            told: told(pause_min),
            left: recover_for,
        };
        while let Next::Wait(pause) = schedule.next(failure, fastrand::u64(..)) {
            sleep(pause).await;
            let said = Said::repeating(timeout, grpc_timeout);
            match self.turn(inner.clone(), request.clone(), said, Before::Unknown).await {
                Turn::Known(known) => return known,
                Turn::Doubt { failed, pause_min } => {
                    tracing::debug!(code = failed.code().code(), "still unknown what happened");
                    failure = Failure {
                        attempt: failure.attempt + 1,
                        previous: pause,
                        told: told(pause_min),
                        left: recover_for.saturating_sub(began.elapsed()),
                    };
                }
            }
        }
        Err(unknown)
    }

    async fn probe(&self, request: &Request<Bytes>) -> Probed {
        let Some(prober) = &self.protection.probe else { return Probed::Unknown };
        let operation = self.permit.record().operation.clone();
        let asking = prober.ask(Asked { operation, request: request.clone() });
        let probed = timeout(self.protection.timeout, AssertUnwindSafe(asking).catch_unwind());
        match probed.await {
            Ok(Ok(Probed::Happened(response))) if !self.keeps(&response) => {
                tracing::error!("a prober's answer is one the policy does not keep; not believed");
                Probed::Unknown
            }
            Ok(Ok(probed)) => probed,
            Ok(Err(_)) | Err(_) => {
                tracing::warn!("a prober panicked or took too long");
                Probed::Unknown
            }
        }
    }

    /// Whether this answer would be stored. One that frees the key would have the effect repeated.
    fn keeps(&self, response: &Response<Bytes>) -> bool {
        let answered = Ended::Answered(Outcome::bare(response.status().as_u16()));
        let end = settle(&self.permit.attempt(), answered, &self.protection.policy);
        !matches!(end.to, Settlement::Released)
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

/// Answers to a repeated request that say nothing about the first one: it is still at work, it is
/// too much now, or the credential that was good then is gone.
fn is_not_now(parts: &response::Parts) -> bool {
    matches!(parts.status.as_u16(), 401 | 403 | 408 | 409 | 425 | 429 | 503)
        || worth(parts) != Worth::Outcome
}

fn retry_after(parts: &response::Parts) -> Duration {
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
