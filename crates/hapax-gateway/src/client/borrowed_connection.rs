//! The body of an answer, which puts its connection back when it ends.

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use hapax_tower::{Body, BoxError};
use http_body::{Frame, SizeHint};
use tokio::{runtime::Handle, sync::OwnedSemaphorePermit, time::timeout};

use super::{
    chunks::{NextChunk, split},
    exclusive_connection::ExclusiveConnection,
    framing::Framing,
    idle::IdleConnections,
    unwritten_request::UnwrittenRequest,
};

/// A body that is still on its way. Dropped early, it takes its connection with it.
pub(super) struct Returning {
    framing: Framing,
    lent: Option<BorrowedConnection>,
}

/// A connection in use.
pub(super) struct BorrowedConnection {
    pub(super) link: ExclusiveConnection,
    /// What is left of the request.
    pub(super) rest: Option<UnwrittenRequest>,
    pub(super) keeps_open: bool,
    pub(super) idle: Arc<IdleConnections>,
    /// Given back when the exchange is over.
    pub(super) _room: OwnedSemaphorePermit,
}

impl Returning {
    /// The body that is framed so. One that is here already is only that: bytes.
    pub(super) fn body(mut framing: Framing, mut lent: BorrowedConnection) -> Body {
        if let Framing::Left(left) = &mut framing
            && usize::try_from(*left).is_ok_and(|left| left <= lent.link.buffer.len())
        {
            let whole = split(&mut lent.link.buffer, left);
            lent.put_back();
            return Body::from(whole);
        }
        Body::new(Self { framing, lent: Some(lent) })
    }

    fn end(&mut self) {
        if let Some(lent) = self.lent.take() {
            lent.put_back();
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Frame<Bytes>>, BoxError>> {
        let Some(lent) = &mut self.lent else { return Poll::Ready(Ok(None)) };
        lent.send_rest(cx);
        loop {
            match self.framing.next(&mut lent.link.buffer)? {
                NextChunk::Data(data) => {
                    if let Framing::Left(0) = self.framing {
                        self.end();
                    }
                    return Poll::Ready(Ok(Some(Frame::data(data))));
                }
                NextChunk::Trailers(trailers) => {
                    self.end();
                    return Poll::Ready(Ok(Some(Frame::trailers(trailers))));
                }
                NextChunk::End => {
                    self.end();
                    return Poll::Ready(Ok(None));
                }
                NextChunk::Later => {}
            }
            if ready!(lent.link.poll_read(cx, self.framing.bytes_left()))? > 0 {
                continue;
            }
            self.lent = None;
            return Poll::Ready(if self.framing.ends_here() {
                Ok(None)
            } else {
                Err(io::Error::from(io::ErrorKind::UnexpectedEof).into())
            });
        }
    }
}

impl BorrowedConnection {
    fn send_rest(&mut self, cx: &mut Context<'_>) {
        let Some(rest) = &mut self.rest else { return };
        match self.link.poll_rest(cx, rest) {
            Poll::Pending => {}
            Poll::Ready(Ok(())) => self.rest = None,
            Poll::Ready(Err(_)) => (self.rest, self.keeps_open) = (None, false),
        }
    }

    fn put_back(mut self) {
        // What came after the answer belongs to nobody.
        if !self.keeps_open || !self.link.buffer.is_empty() {
            return;
        }
        self.link.buffer = BytesMut::new();
        match self.rest.take() {
            None => self.idle.put_back(self.link),
            Some(rest) => {
                if let Ok(runtime) = Handle::try_current() {
                    runtime.spawn(self.finish(rest));
                }
            }
        }
    }

    /// Sends what is left of a request that was answered early: its upstream may still want it.
    async fn finish(mut self, mut rest: UnwrittenRequest) {
        let sending = poll_fn(|cx| self.link.poll_rest(cx, &mut rest));
        if let Ok(Ok(())) = timeout(FINISH_TIME_MAX, sending).await {
            self.idle.put_back(self.link);
        }
    }
}

/// Longest time an upstream is given to take the rest of a request that it has answered.
const FINISH_TIME_MAX: Duration = Duration::from_secs(30);

impl http_body::Body for Returning {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let next = ready!(self.poll_next(cx));
        if next.is_err() {
            self.lent = None;
        }
        Poll::Ready(next.transpose())
    }

    fn is_end_stream(&self) -> bool {
        match &self.framing {
            Framing::Left(left) => *left == 0,
            Framing::Chunked(_) | Framing::UntilClose => self.lent.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.framing {
            Framing::Left(left) => SizeHint::with_exact(*left),
            Framing::Chunked(_) | Framing::UntilClose => SizeHint::default(),
        }
    }
}
