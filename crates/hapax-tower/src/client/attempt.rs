//! One attempt: a request out, an answer back, within its time.

use std::{future::poll_fn, time::Duration};

use hapax_core::retry::{Cost, Evidence, Heard};
use http::{Request, Response, response};
use tokio::time::timeout;

use super::{
    answer::Answer,
    key,
    whole::{Read, Whole, read},
};
use crate::{Body, BoxError, HttpService, NothingSent};

/// What an attempt may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) time: Duration,
    /// How much of an answer is awaited.
    pub(super) response_bytes_max: usize,
    /// Whether a success is handed on as soon as its head is there.
    pub(super) streams: bool,
}

/// How an attempt ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) answer: Answer,
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
enum Progress {
    /// The client is not ready to send anything.
    Unsent,
    Sent,
    /// The head of an answer arrived.
    Answering(u16),
}

/// Makes one attempt.
pub(super) async fn attempt<Inner: HttpService>(
    inner: &mut Inner,
    request: Request<Body>,
    key: Option<&key::OfRequest>,
    limits: Limits,
) -> Ended {
    let mut progress = Progress::Unsent;
    let exchange = exchange(inner, request, limits, &mut progress);
    match timeout(limits.time, exchange).await {
        Ok(Ok((parts, received))) => Ended::answered(parts, received, key),
        Ok(Err(error)) if NothingSent::is_in(&*error) => {
            Ended::failed(Progress::Unsent, Cost::Failure, error)
        }
        Ok(Err(error)) => Ended::failed(progress, Cost::Failure, error),
        Err(_) => Ended::failed(progress, Cost::Timeout, TimedOut(limits.time).into()),
    }
}

async fn exchange<Inner: HttpService>(
    inner: &mut Inner,
    request: Request<Body>,
    limits: Limits,
    progress: &mut Progress,
) -> Result<(response::Parts, Read), BoxError> {
    poll_fn(|cx| inner.poll_ready(cx)).await.map_err(Into::into)?;
    *progress = Progress::Sent;
    let (parts, body) = inner.call(request).await.map_err(Into::into)?.into_parts();
    if limits.streams && parts.status.is_success() {
        return Ok((parts, Read::Larger(Body::new(body))));
    }
    *progress = Progress::Answering(parts.status.as_u16());
    let received = read(body, limits.response_bytes_max).await?;
    Ok((parts, received))
}

impl Ended {
    fn answered(parts: response::Parts, received: Read, key: Option<&key::OfRequest>) -> Self {
        let (body, whole) = match received {
            Read::Whole(whole) => (whole.body(), Some(whole)),
            Read::Larger(body) => (body, None),
        };
        let bytes = whole.as_ref().map(|Whole { bytes, .. }| &**bytes);
        let answer = Answer::read(parts.status, &parts.headers, bytes, key);
        Self {
            answer,
            evidence: Evidence { cut: None, knows_key: answer.knows_key },
            cost: Cost::Failure,
            result: Ok(Response::from_parts(parts, body)),
        }
    }

    fn failed(progress: Progress, cost: Cost, error: BoxError) -> Self {
        let (heard, cut) = match progress {
            Progress::Unsent => (Heard::NotSent, None),
            Progress::Sent => (Heard::Unanswered, None),
            Progress::Answering(status) => (Heard::Unanswered, Some(status)),
        };
        let evidence = Evidence { cut, knows_key: false };
        Self { answer: Answer::none(heard), evidence, cost, result: Err(error) }
    }
}
