//! Reads a request's body: within its cap, in time, and while there is room.

use std::{future::poll_fn, pin::pin, task::Poll};

use bytes::Bytes;
use http::{header::CONTENT_LENGTH, request::Parts};
use http_body::Body as _;
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::{
    body::{Body, BoxError},
    capped_body::Gathered,
    server::{
        options::Protection,
        requests::{
            caller_signals::{CallerSignals, too_late},
            drain::UnreadBody,
            room::{RequestRoom, Room, Share},
        },
        responses::{answer::TRY_AGAIN, code::Code, problem::Problem},
    },
    too_slow::TooSlow,
};

/// A refusal, and what was not read of the request.
pub(crate) type Refused = (Problem, UnreadBody);

/// A body in memory, and the room it takes there.
pub(crate) struct ReceivedBody {
    pub(crate) body: Bytes,
    pub(crate) room: RequestRoom,
}

/// What came of a body.
pub(crate) enum BodyReceipt {
    Whole(ReceivedBody),
    /// It is larger than the cap: what was read of it, and what was not.
    Larger {
        read: Bytes,
        rest: Body,
        room: Option<RequestRoom>,
    },
}

/// Refuses a body that is larger than the cap of its route.
pub(crate) fn too_large(protection: &Protection, rest: Body) -> Refused {
    let detail = format!("The limit is {} bytes.", protection.request_bytes_max);
    (Problem::new(Code::BodyTooLarge, detail), UnreadBody::Unread(rest))
}

/// Reads the body as far as its cap.
pub(crate) async fn receive_any(
    room: Option<&Room>,
    protection: &Protection,
    said: CallerSignals,
    parts: &Parts,
    body: Body,
) -> Result<BodyReceipt, Refused> {
    let cap = protection.request_bytes_max;
    let announced = announced(parts, &body);
    if announced.is_some_and(|len| len > cap) {
        return Ok(BodyReceipt::Larger { read: Bytes::new(), rest: body, room: None });
    }
    let Some(held) = RequestRoom::begin(room, parts.extensions.get::<Share>()) else {
        let detail = "Too many requests of this connection are at work. Nothing was run for this \
                      one. Ask again.";
        let problem = Problem::new(Code::Overloaded, detail).retry_after(TRY_AGAIN);
        return Err((problem, UnreadBody::Unread(body)));
    };
    // What is announced is no reason to keep room for it, but may be one not to begin.
    if !held.could_take(announced.unwrap_or(1)) {
        return Err((no_room(), UnreadBody::Unread(body)));
    }
    let mut reading = pin!(read(body, cap, held));
    // Most bodies are here with their heads, and need no timer.
    let read = match poll_fn(|cx| Poll::Ready(reading.as_mut().poll(cx))).await {
        Poll::Ready(read) => Ok(read),
        Poll::Pending => timeout(said.cut(protection.receive_within), reading).await,
    };
    match read {
        Ok(Ok(ReadBody::Read(receipt))) => Ok(receipt),
        Ok(Ok(ReadBody::NoRoom(rest))) => Err((no_room(), UnreadBody::Unread(rest))),
        Ok(Err(error)) if TooSlow::is_in(&*error) => {
            let detail = "It stopped half-way, or came in drops. Nothing was run.";
            Err((Problem::new(Code::BodyTooSlow, detail), UnreadBody::Broken))
        }
        Ok(Err(error)) => {
            tracing::debug!(%error, "a request ended early");
            Err((Problem::new(Code::BodyIncomplete, "Nothing was run."), UnreadBody::Broken))
        }
        Err(_elapsed) if said.is_over() => Err((too_late(), UnreadBody::Broken)),
        Err(_elapsed) => {
            let limit = protection.receive_within.as_secs();
            let detail = format!("It has to be complete within {limit} seconds. Nothing was run.");
            Err((Problem::new(Code::BodyTooSlow, detail), UnreadBody::Broken))
        }
    }
}

/// What came out of a request's body.
enum ReadBody {
    Read(BodyReceipt),
    /// More than there is room for, and the rest of it.
    NoRoom(Body),
}

/// Reads a body, taking room for each piece when it comes.
async fn read(mut body: Body, cap: usize, mut room: RequestRoom) -> Result<ReadBody, BoxError> {
    let mut gathered = Gathered::default();
    while let Some(frame) = body.frame().await {
        // Trailers are neither compared nor stored.
        let Ok(data) = frame?.into_data() else { continue };
        if gathered.len() + data.len() > cap {
            gathered.add(data);
            let (read, room) = (gathered.joined(), Some(room));
            return Ok(ReadBody::Read(BodyReceipt::Larger { read, rest: body, room }));
        }
        if !room.take(data.len()) {
            return Ok(ReadBody::NoRoom(body));
        }
        gathered.add(data);
    }
    Ok(ReadBody::Read(BodyReceipt::Whole(ReceivedBody { body: gathered.joined(), room })))
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
