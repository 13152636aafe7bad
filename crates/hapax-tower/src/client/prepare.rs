//! What is settled before anything is sent.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use bytes::Bytes;
use hapax_core::retry::{AttemptHistory, Deadline};
use http::{HeaderMap, Request, request};
use tokio::time::timeout;

use super::{
    buffered_body::{BodyRead, read},
    call::{CallTally, OutgoingRequest, RetriedCall},
    error::InvalidRequest,
    key,
    layer::Shared,
    options::{Keys, Pursuit, RetryOptions},
};
use crate::{Body, BoxError, IDEMPOTENCY_KEY, signal};

/// Makes a call of a request: its key, its deadline, and its body in memory if it may be sent again.
pub(super) async fn prepare<B>(
    shared: &Shared,
    request: Request<B>,
) -> Result<RetriedCall, InvalidRequest>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let options = &shared.options;
    let now = options.destinations.now();
    let (mut parts, body) = request.into_parts();
    let pursuit = parts.extensions.remove::<Pursuit>().unwrap_or_default();
    let deadline = deadline(options, pursuit.deadline, &parts.headers, now)?;
    let key = keyed(shared, &mut parts)?;
    let is_harmless = key.is_some() || parts.method.is_idempotent();
    let repeats = is_harmless && !signal::is_retried_further_out(&parts.headers);
    signal::set_retried_further_out(&mut parts.headers);
    let reads_only = parts.method.is_safe();
    let outgoing = if repeats {
        let reading = read(body, options.request_bytes_max);
        match within(deadline.left(now), reading).await.map_err(InvalidRequest::Body)? {
            BodyRead::Whole(whole) => OutgoingRequest::Again(parts, whole),
            BodyRead::Larger(_) => {
                return Err(InvalidRequest::TooLarge { bytes_max: options.request_bytes_max });
            }
        }
    } else {
        OutgoingRequest::Once(Some(Request::from_parts(parts, Body::new(body))))
    };
    Ok(RetriedCall {
        outgoing,
        key,
        reads_only,
        history: if reads_only { AttemptHistory::reading() } else { pursuit.history },
        deadline,
        schedule: pursuit.schedule.unwrap_or(options.schedule),
        patience: pursuit.patience,
        watch: pursuit.watch,
        tally: CallTally::default(),
    })
}

/// Waits for a body; one that is there already needs no timer.
async fn within<T>(
    time: Duration,
    reading: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, BoxError> {
    let mut reading = pin!(reading);
    match poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await {
        Poll::Ready(read) => read,
        Poll::Pending => timeout(time, reading).await.unwrap_or_else(|elapsed| Err(elapsed.into())),
    }
}

/// What was asked for, or less if whoever is further out has less time.
fn deadline(
    options: &RetryOptions,
    asked: Option<Duration>,
    headers: &HeaderMap,
    now: Duration,
) -> Result<Deadline, InvalidRequest> {
    let mut deadline = Deadline::after(now, asked.unwrap_or(options.deadline));
    if let Some(left) = signal::time_left(headers)? {
        deadline = deadline.within(now, left);
    }
    if options.grpc_timeout
        && let Some(left) = signal::grpc_time_left(headers)?
    {
        deadline = deadline.within(now, left);
    }
    Ok(deadline)
}

/// The key of the request, made here if that is wanted.
fn keyed(
    shared: &Shared,
    parts: &mut request::Parts,
) -> Result<Option<key::OfRequest>, InvalidRequest> {
    let given = key::OfRequest::given(&parts.headers)?;
    let is_wanted = match shared.options.keys {
        Keys::Add => !parts.method.is_idempotent(),
        Keys::OnlyGiven => false,
    };
    if given.is_some() || !is_wanted {
        return Ok(given);
    }
    let made = shared.keys.draw_quoted();
    if let Some(key::OfRequest(value)) = &made {
        parts.headers.insert(IDEMPOTENCY_KEY, value.clone());
    }
    Ok(made)
}
