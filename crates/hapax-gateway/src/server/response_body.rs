//! Answers on their way to clients, which may take them slowly, or not at all.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use hapax_tower::{Body, BoxError, Code, Room, RoomGuard, Site, Verdict};
use http::{HeaderName, HeaderValue, Response, header::RETRY_AFTER};
use http_body::{Body as _, Frame, SizeHint};

use super::watch::Owed;
use crate::{size_hint, telemetry::RequestObservation};

/// An answer up to this size takes no more than the stream it is sent on does anyway.
const SMALL_BYTES_MAX: usize = 4 << 10;
/// Most bytes of an answer that are handed on at once: how far it has come is seen between pieces.
const PIECE_BYTES_MAX: usize = 64 << 10;
/// Says that an answer is stored, and until when.
static EXPIRES: HeaderName = HeaderName::from_static("idempotency-expires");

/// Room for the answers of one connection that its client has not taken.
#[derive(Debug, Clone)]
pub(crate) struct AnswerRoom {
    all: Room,
    connection: Room,
}

/// Room for one answer, there and here.
type Place = (RoomGuard, RoomGuard);

impl AnswerRoom {
    /// What a connection may use of what all of them may; one answer may be larger than its share.
    pub(crate) fn new(all: &Room, share_bytes_max: usize) -> Self {
        Self { all: all.clone(), connection: Room::of(share_bytes_max) }
    }

    /// Whether the client has left as much as it may, so that nothing more is done for it.
    pub(crate) fn is_full(&self) -> bool {
        !self.connection.fits(1)
    }

    /// The answer as it is sent. One that is stored and for which there is no room is held back, as
    /// it can be asked for again; any other is sent all the same, for it would be lost.
    pub(crate) fn send(
        &self,
        mut response: Response<Body>,
        verdict: Verdict,
        owed: Owed,
        mut observed: Option<Box<RequestObservation>>,
    ) -> Response<ResponseBody> {
        let mut place = None;
        let len = response.body().is_whole().then(|| response.body().size_hint().lower());
        let len = len.and_then(|len| usize::try_from(len).ok()).unwrap_or(0);
        if len > SMALL_BYTES_MAX {
            place = self.take(len);
            if place.is_none() && is_stored(&response, verdict) {
                tracing::warn!(len, "an answer was held back: too many wait to be taken");
                response = held_back();
            }
        }
        if let Some(observed) = &mut observed {
            observed.answered(response.status());
        }
        let room = self.clone();
        let owed = Arc::new(owed);
        response.map(|body| ResponseBody { body, rest: Bytes::new(), place, room, owed, observed })
    }

    fn take(&self, bytes: usize) -> Option<Place> {
        let here = match self.connection.taken() {
            0 => self.connection.take_anyway(bytes),
            _ => self.connection.take(bytes)?,
        };
        Some((self.all.take(bytes)?, here))
    }

    fn take_anyway(&self, bytes: usize) -> Place {
        (self.all.take_anyway(bytes), self.connection.take_anyway(bytes))
    }
}

fn is_stored(response: &Response<Body>, verdict: Verdict) -> bool {
    let is_ours = match verdict {
        Verdict::Executed | Verdict::TakenOver | Verdict::Replayed | Verdict::Page => true,
        Verdict::Unanswered(_)
        | Verdict::Queued
        | Verdict::Busy
        | Verdict::InDoubt
        | Verdict::Mismatch
        | Verdict::Gone
        | Verdict::Refused(_)
        | Verdict::Undecided
        | Verdict::Unprotected
        | Verdict::Passed
        | Verdict::PassedKeyless => false,
    };
    is_ours && response.headers().contains_key(&EXPIRES)
}

fn held_back() -> Response<Body> {
    let detail = "The operation was done and its answer is stored. Take the answers that were \
                  sent, then ask again with the same key.";
    let mut response = Code::AnswerHeldBack.answer(detail, &Site::default());
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

/// The body of an answer: in pieces, each of which takes room until it has left.
#[derive(Debug)]
pub(crate) struct ResponseBody {
    body: Body,
    /// What was taken from the body and is not handed on yet.
    rest: Bytes,
    /// Room for a body that is whole, until it is asked for.
    place: Option<Place>,
    room: AnswerRoom,
    owed: Arc<Owed>,
    /// Who is told of the whole when it has left.
    observed: Option<Box<RequestObservation>>,
}

impl ResponseBody {
    /// The same bytes, taking room for as long as anybody has them.
    fn counted(&mut self, bytes: Bytes) -> Bytes {
        if bytes.len() <= SMALL_BYTES_MAX {
            return bytes;
        }
        let place = self.place.take().unwrap_or_else(|| self.room.take_anyway(bytes.len()));
        Bytes::from_owner(Untaken { bytes, _place: place, _owed: Arc::clone(&self.owed) })
    }

    fn next_piece(&mut self) -> Frame<Bytes> {
        let piece = self.rest.split_to(self.rest.len().min(PIECE_BYTES_MAX));
        self.owed.handed_on(piece.len());
        if let Some(observed) = &mut self.observed {
            observed.handed_on(piece.len());
        }
        Frame::data(piece)
    }
}

/// Bytes that are in memory until their client has taken them.
struct Untaken {
    bytes: Bytes,
    _place: Place,
    _owed: Arc<Owed>,
}

impl AsRef<[u8]> for Untaken {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl http_body::Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.rest.is_empty() {
            let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
                self.owed.waits();
                return Poll::Pending;
            };
            match frame.map(|frame| frame.map(Frame::into_data)) {
                Some(Ok(Ok(data))) => self.rest = self.counted(data),
                Some(Ok(Err(trailers))) => return Poll::Ready(Some(Ok(trailers))),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => return Poll::Ready(None),
            }
        }
        Poll::Ready(Some(Ok(self.next_piece())))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        size_hint::after(self.rest.len(), &self.body.size_hint())
    }
}
