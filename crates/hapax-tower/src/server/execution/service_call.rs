//! Sends a request once, and takes what comes back.

use std::{future::poll_fn, panic::AssertUnwindSafe, time::Duration};

use bytes::Bytes;
use futures_util::FutureExt;
use hapax_core::{Attempt, OperationId};
use http::{HeaderMap, Request, response};
use http_body_util::BodyExt;
use tokio::{sync::mpsc, time::timeout};

use crate::{
    body::{Body, BoxError, PipedPiece},
    http_service::HttpService,
    nothing_sent::NothingSent,
    server::{
        calls::{self, CallEnd},
        execution::{
            body_capture::{Captured, capture_with_trailers},
            failed_attempt::FailedAttempt,
        },
        options::Protection,
        requests::caller_signals::CallerSignals,
    },
};

/// What a service said.
#[derive(Debug)]
pub(crate) struct ServiceResponse {
    pub(crate) parts: response::Parts,
    pub(crate) body: Captured,
}

/// Sends the request, and waits for the answer as long as the route allows.
pub(crate) async fn produce<Inner>(
    inner: Inner,
    request: Request<Bytes>,
    said: CallerSignals,
    protection: &Protection,
) -> Result<ServiceResponse, FailedAttempt>
where
    Inner: HttpService,
{
    let said = said.within(protection.timeout);
    let work = call(inner, request.map(Body::from), said, protection.response_bytes_max);
    match timeout(protection.timeout, AssertUnwindSafe(work).catch_unwind()).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_panic)) => Err(FailedAttempt::Panicked),
        Err(_elapsed) => Err(FailedAttempt::TimedOut),
    }
}

/// Hands the request over, and takes the answer up to the cap.
pub(crate) async fn call<Inner>(
    mut inner: Inner,
    mut request: Request<Body>,
    said: CallerSignals,
    cap: usize,
) -> Result<ServiceResponse, FailedAttempt>
where
    Inner: HttpService,
{
    let operation = request.extensions().get::<Attempt>().map(|attempt| attempt.id);
    let ready = poll_fn(|cx| inner.poll_ready(cx)).await;
    ready.map_err(|error| noted(operation, error, FailedAttempt::NotStarted))?;
    if said.is_over() {
        return Err(FailedAttempt::TooLate);
    }
    said.tell(&mut request);
    let response = inner.call(request).await.map_err(|error| {
        let error = error.into();
        let failed = if NothingSent::is_in(&*error) {
            FailedAttempt::NotStarted
        } else {
            FailedAttempt::Unanswered
        };
        noted(operation, error, failed)
    })?;
    let (mut parts, body) = response.into_parts();
    let captured = capture_with_trailers(Body::new(body), cap).await;
    let answered = captured.map(|(body, trailers)| {
        // How a longer answer ends is known when it has.
        if calls::is_call(&parts.headers) && matches!(body, Captured::Whole(_)) {
            let trailers = trailers.map(|trailers| *trailers).unwrap_or_default();
            parts.extensions.insert(CallEnd::of(&parts.headers, trailers));
        }
        ServiceResponse { parts, body }
    });
    answered.map_err(|error| noted(operation, error, FailedAttempt::Unanswered))
}

fn noted(
    operation: Option<OperationId>,
    error: impl Into<BoxError>,
    failed: FailedAttempt,
) -> FailedAttempt {
    let (operation, error) = (operation.map(tracing::field::display), error.into());
    tracing::warn!(operation, %error, "a protected service failed");
    failed
}

/// Moves the rest of a response to its client; without one it is read all the same, because the
/// service behind it is still at work. How long it was, and what came
/// after it.
pub(crate) async fn pump(
    read: Bytes,
    mut rest: Body,
    pipe: &mut Option<mpsc::Sender<PipedPiece>>,
    stall: Duration,
    operation: OperationId,
) -> Result<(u64, HeaderMap), FailedAttempt> {
    let (mut len, mut trailers) = (0, HeaderMap::new());
    let mut next = Some(read);
    while let Some(chunk) = next {
        len += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        if let Some(open) = pipe {
            let taken = timeout(stall, open.send(PipedPiece::Data(chunk))).await;
            if !matches!(taken, Ok(Ok(()))) {
                *pipe = None;
            }
        }
        next = loop {
            match timeout(stall, rest.frame()).await {
                Ok(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => break Some(data),
                    Err(frame) => trailers = frame.into_trailers().unwrap_or_default(),
                },
                Ok(Some(Err(error))) => {
                    return Err(noted(Some(operation), error, FailedAttempt::Unanswered));
                }
                Ok(None) => break None,
                Err(_elapsed) => return Err(FailedAttempt::TimedOut),
            }
        };
    }
    Ok((len, trailers))
}
