//! Finds out what became of an attempt that nobody answered: by sending the same request again, or
//! by asking.

use std::{panic::AssertUnwindSafe, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use hapax_core::{Ended, Outcome, Recovery, ResultPolicy, Store, settle, store::Settlement};
use http::{Request, Response, StatusCode, header::RETRY_AFTER, response};
use tokio::time::{Instant, sleep, timeout};

use super::{
    capture::Captured,
    failed::Failed,
    probe::{Asked, Probed},
    produce::{Answer, produce},
    protected::Protected,
    unit::Unit,
};
use crate::body::Body;

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
        before: Before,
    ) -> Turn
    where
        Inner: Protected,
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
        match (produce(inner, request, &self.protection).await, before) {
            (Ok(answer), Before::Unknown) if is_not_now(answer.parts.status) => {
                Turn::Doubt { failed: Failed::NotRecovered, pause_min: retry_after(&answer.parts) }
            }
            (Err(failed @ (Failed::Unanswered | Failed::TimedOut)), _)
            | (Err(failed @ Failed::NotStarted), Before::Unknown) => doubt(failed),
            (known, _) => Turn::Known(known),
        }
    }

    /// Takes turns until it is known what happened, or the time for it is over.
    pub(crate) async fn find_out<Inner>(
        &self,
        inner: Inner,
        request: Request<Bytes>,
        unknown: Failed,
        mut pause_min: Duration,
    ) -> Result<Answer, Failed>
    where
        Inner: Protected,
    {
        let began = Instant::now();
        let mut schedule = Schedule::lasting(self.protection.recover_for);
        while let Some(pause) = schedule.next(began.elapsed(), pause_min, fastrand::f64()) {
            sleep(pause).await;
            match self.turn(inner.clone(), request.clone(), Before::Unknown).await {
                Turn::Known(known) => return known,
                Turn::Doubt { failed, pause_min: asked } => {
                    tracing::debug!(code = failed.code().code(), "still unknown what happened");
                    pause_min = asked;
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
fn is_not_now(status: StatusCode) -> bool {
    matches!(status.as_u16(), 401 | 403 | 408 | 409 | 425 | 429 | 503)
}

fn retry_after(parts: &response::Parts) -> Duration {
    let seconds = parts.headers.get(RETRY_AFTER).and_then(|wait| wait.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}

const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// When to try again: after pauses that double, with jitter, for a limited time.
struct Schedule {
    lasts: Duration,
    pause: Duration,
}

impl Schedule {
    fn lasting(lasts: Duration) -> Self {
        Self { lasts, pause: PAUSE_MIN }
    }

    /// The pause before the next turn; `None` if it would be too late. `random` is in 0 to 1.
    fn next(&mut self, elapsed: Duration, pause_min: Duration, random: f64) -> Option<Duration> {
        let half = self.pause / 2;
        let pause = (half + half.mul_f64(random)).max(pause_min);
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        (elapsed.saturating_add(pause) <= self.lasts).then_some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_cap_and_end_when_the_time_is_over() {
        let mut schedule = Schedule::lasting(Duration::from_secs(20));
        let mut elapsed = Duration::ZERO;
        let mut pauses = Vec::new();
        while let Some(pause) = schedule.next(elapsed, Duration::ZERO, 1.0) {
            elapsed += pause;
            pauses.push(pause.as_millis());
        }
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    }

    #[test]
    fn jitter_takes_up_to_half_of_a_pause_and_a_service_may_ask_for_more() {
        let mut schedule = Schedule::lasting(Duration::from_secs(20));
        let mut next = |pause_min, random| {
            schedule.next(Duration::ZERO, Duration::from_secs(pause_min), random)
        };
        assert_eq!(next(0, 0.0), Some(Duration::from_millis(50)));
        assert_eq!(next(0, 0.5), Some(Duration::from_millis(150)));
        assert_eq!(next(7, 0.5), Some(Duration::from_secs(7)));
        assert_eq!(next(21, 0.5), None);
    }
}
