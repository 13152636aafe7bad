//! One attempt: a request out, an answer back, within its time.

use std::{future::poll_fn, time::Duration};

use hapax_core::retry::{AttemptResult, Cost, Evidence};
use http::{Request, Response, StatusCode, response};
use tokio::time::timeout;

use super::{
    answer::ResponseReading,
    attempt_result::begun_success,
    buffered_body::{BodyRead, Whole, read},
    key,
};
use crate::{Body, BoxError, HttpService, NothingSent};

/// What an attempt may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttemptLimits {
    pub(super) time: Duration,
    /// How much of an answer is awaited.
    pub(super) response_bytes_max: usize,
    /// Whether a success is handed on as soon as its head is there.
    pub(super) streams: bool,
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) struct EndedAttempt {
    pub(super) answer: ResponseReading,
    pub(super) evidence: Evidence,
    pub(super) cost: Cost,
    pub(super) result: Result<Response<Body>, BoxError>,
}

/// The attempt took longer than it may.
#[derive(Debug, thiserror::Error)]
#[error("no complete answer within {0:?}")]
struct TimedOut(Duration);

/// How far an attempt came.
#[derive(Debug, Clone, Copy)]
enum AttemptProgress {
    /// The client is not ready to send anything.
    Unsent,
    Sent,
    /// The head of an answer arrived.
    Answering(StatusCode),
}

/// Makes one attempt.
pub(super) async fn attempt<Inner: HttpService>(
    inner: &mut Inner,
    request: Request<Body>,
    key: Option<&key::OfRequest>,
    limits: AttemptLimits,
) -> EndedAttempt {
    let mut progress = AttemptProgress::Unsent;
    let exchange = exchange(inner, request, limits, &mut progress);
    match timeout(limits.time, exchange).await {
        Ok(Ok((parts, received))) => EndedAttempt::answered(parts, received, key),
        Ok(Err(error)) if NothingSent::is_in(&*error) => {
            EndedAttempt::failed(AttemptProgress::Unsent, Cost::Failure, error)
        }
        Ok(Err(error)) => EndedAttempt::failed(progress, Cost::Failure, error),
        Err(_) => EndedAttempt::failed(progress, Cost::Timeout, TimedOut(limits.time).into()),
    }
}

async fn exchange<Inner: HttpService>(
    inner: &mut Inner,
    request: Request<Body>,
    limits: AttemptLimits,
    progress: &mut AttemptProgress,
) -> Result<(response::Parts, BodyRead), BoxError> {
    poll_fn(|cx| inner.poll_ready(cx)).await.map_err(Into::into)?;
    *progress = AttemptProgress::Sent;
    let (parts, body) = inner.call(request).await.map_err(Into::into)?.into_parts();
    if limits.streams && parts.status.is_success() {
        return Ok((parts, BodyRead::Larger(Body::new(body))));
    }
    *progress = AttemptProgress::Answering(parts.status);
    let received = read(body, limits.response_bytes_max).await?;
    Ok((parts, received))
}

impl EndedAttempt {
    fn answered(parts: response::Parts, received: BodyRead, key: Option<&key::OfRequest>) -> Self {
        let (body, whole) = match received {
            BodyRead::Whole(whole) => (whole.body(), Some(whole)),
            BodyRead::Larger(body) => (body, None),
        };
        let bytes = whole.as_ref().map(|Whole { bytes, .. }| &**bytes);
        let answer = ResponseReading::read(parts.status, &parts.headers, bytes, key);
        Self {
            answer,
            evidence: Evidence { cut: None, knows_key: answer.knows_key },
            cost: Cost::Failure,
            result: Ok(Response::from_parts(parts, body)),
        }
    }

    fn failed(progress: AttemptProgress, cost: Cost, error: BoxError) -> Self {
        let (result, cut) = match progress {
            AttemptProgress::Unsent => (AttemptResult::NotSent, None),
            AttemptProgress::Sent => (AttemptResult::Unanswered, None),
            AttemptProgress::Answering(status) => {
                (AttemptResult::Unanswered, begun_success(status))
            }
        };
        let evidence = Evidence { cut, knows_key: false };
        Self { answer: ResponseReading::none(result), evidence, cost, result: Err(error) }
    }
}
