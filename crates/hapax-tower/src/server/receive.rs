//! Reads a request's body: within its cap, in time, and while there is room.

use std::{future::poll_fn, pin::pin, sync::Arc, task::Poll};

use bytes::Bytes;
use http::{header::CONTENT_LENGTH, request::Parts};
use http_body::Body as _;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::timeout,
};

use super::{
    answer::TRY_AGAIN,
    capture::{Captured, capture},
    code::Code,
    drain::Rest,
    options::Protection,
    problem::Problem,
    said::{Said, too_late},
};
use crate::body::Body;

/// A refusal, and what was not read of the request.
pub(crate) type Refused = (Problem, Rest);

/// A body in memory, and the room it takes there.
pub(crate) struct Received {
    pub(crate) body: Bytes,
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

/// Reads the whole body, or refuses it.
pub(crate) async fn receive(
    room: Option<&Room>,
    protection: &Protection,
    said: Said,
    parts: &Parts,
    body: Body,
) -> Result<Received, Refused> {
    let cap = protection.request_bytes_max;
    let too_large = |rest| {
        let problem = Problem::new(Code::BodyTooLarge, format!("The limit is {cap} bytes."));
        (problem, Rest::Unread(rest))
    };
    let announced = announced(parts, &body);
    if announced.is_some_and(|len| len > cap) {
        return Err(too_large(body));
    }
    let mut taken = match room {
        None => None,
        Some(room) => match room.take(announced.unwrap_or(cap)) {
            Some(taken) => Some(taken),
            None => return Err((no_room(), Rest::Unread(body))),
        },
    };
    let mut reading = pin!(capture(body, cap));
    // Most bodies are here with their heads, and need no timer.
    let read = match poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await {
        Poll::Ready(read) => Ok(read),
        Poll::Pending => timeout(said.cut(protection.receive_within), reading).await,
    };
    let body = match read {
        Ok(Ok(Captured::Whole(bytes))) => bytes,
        Ok(Ok(Captured::Larger { rest, .. })) => return Err(too_large(rest)),
        Ok(Err(error)) => {
            tracing::debug!(%error, "a request ended early");
            let problem = Problem::new(Code::BodyIncomplete, "Nothing was run.");
            return Err((problem, Rest::Broken));
        }
        Err(_elapsed) if said.is_over() => return Err((too_late(), Rest::Broken)),
        Err(_elapsed) => {
            let limit = protection.receive_within.as_secs();
            let detail = format!("It has to be complete within {limit} seconds. Nothing was run.");
            return Err((Problem::new(Code::BodyTooSlow, detail), Rest::Broken));
        }
    };
    if let Some(taken) = &mut taken {
        drop(taken.split(taken.num_permits().saturating_sub(body.len())));
    }
    Ok(Received { body, room: taken })
}

/// How long the body says it is.
fn announced(parts: &Parts, body: &Body) -> Option<usize> {
    let length = parts.headers.get(CONTENT_LENGTH).and_then(|len| len.to_str().ok()?.parse().ok());
    length.or_else(|| usize::try_from(body.size_hint().exact()?).ok())
}

fn no_room() -> Problem {
    let detail = "Too many requests are being read at once. Nothing was run. Ask again.";
    Problem::new(Code::Overloaded, detail).retry_after(TRY_AGAIN)
}

/// How many bytes of requests may be in memory at once.
#[derive(Debug, Clone)]
pub(crate) struct Room {
    free: Arc<Semaphore>,
    bytes: usize,
}

impl Room {
    pub(crate) fn of(bytes: usize) -> Self {
        let bytes = bytes.min(Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(bytes)), bytes }
    }

    /// Room for this many bytes, or all there is if they are more; `None` if that is not free.
    fn take(&self, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes.min(self.bytes)).unwrap_or(u32::MAX);
        Arc::clone(&self.free).try_acquire_many_owned(bytes).ok()
    }
}
