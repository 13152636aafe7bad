//! A body of which some was read already, to be passed on as a whole.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::{
    body::{Body, BoxError},
    server::requests::room::RequestRoom,
};

/// What was read, and then the rest. It keeps the room that was taken for it until it is done with.
pub(crate) struct ResumedBody {
    read: Bytes,
    rest: Body,
    _room: Option<RequestRoom>,
}

impl ResumedBody {
    pub(crate) fn new(read: Bytes, rest: Body, room: Option<RequestRoom>) -> Self {
        Self { read, rest, _room: room }
    }
}

impl http_body::Body for ResumedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if self.read.is_empty() {
            return Pin::new(&mut self.rest).poll_frame(cx);
        }
        Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.read)))))
    }

    fn is_end_stream(&self) -> bool {
        self.read.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (read, rest) = (u64::try_from(self.read.len()).unwrap_or(0), self.rest.size_hint());
        let mut hint = SizeHint::new();
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(read));
        }
        hint.set_lower(rest.lower().saturating_add(read));
        hint
    }
}
