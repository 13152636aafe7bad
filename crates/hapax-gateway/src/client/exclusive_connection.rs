//! One HTTP/1.1 connection to the upstream, driven by whoever uses it.
//!
//! There is no task behind a connection: the request is written and its answer is read where the
//! answer is waited for, which spares two hand-overs between tasks for each request.

use std::{
    future::poll_fn,
    io,
    pin::{Pin, pin},
    task::{Context, Poll, Waker, ready},
};

use bytes::BytesMut;
use hapax_tower::BoxError;
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

use super::{
    connect::Io,
    error::{RequestBroken, SendError},
    head::{self, ExpectedAnswer, Head, HeadLimits},
    unwritten_request::{UnwrittenRequest, WriteError},
};

/// How much is read at once, unless more is known to come.
const READ_BYTES: usize = 8 << 10;
/// Most that is read at once.
const READ_BYTES_MAX: usize = 64 << 10;

/// A connection that nobody else uses.
pub(super) struct ExclusiveConnection {
    io: Io,
    /// What was read and not yet used. Without a buffer while nothing is read, so that connections
    /// that wait share what is in the processor's cache.
    pub(super) buffer: BytesMut,
}

/// An exchange whose head has come.
pub(super) struct AnsweredExchange {
    pub(super) head: Head,
    /// What the upstream has not taken of the request; it may answer before.
    pub(super) rest: Option<UnwrittenRequest>,
}

/// Why there is no head.
pub(super) enum NoHead {
    /// Nothing has left: the request can be sent elsewhere.
    NothingSent(UnwrittenRequest),
    Failed(SendError),
}

impl ExclusiveConnection {
    pub(super) fn new(io: Io) -> Self {
        Self { io, buffer: BytesMut::new() }
    }

    /// The connection itself, with what was read of it and not used: it is no longer HTTP.
    pub(super) fn into_parts(self) -> (Io, BytesMut) {
        (self.io, self.buffer)
    }

    /// Whether an unused connection can still be used: it is open, and nothing has come that nobody
    /// asked for.
    pub(super) fn is_usable(&mut self) -> bool {
        let mut byte = [0];
        let mut unasked = ReadBuf::new(&mut byte);
        let mut cx = Context::from_waker(Waker::noop());
        Pin::new(&mut self.io).poll_read(&mut cx, &mut unasked).is_pending()
    }

    /// Sends a request, and reads the head of its answer.
    pub(super) async fn exchange(
        &mut self,
        mut request: UnwrittenRequest,
        expected: ExpectedAnswer<'_>,
        limits: HeadLimits,
    ) -> Result<AnsweredExchange, NoHead> {
        let mut unwritten = None;
        let head = poll_fn(|cx| {
            match unwritten.is_none().then(|| request.poll_write(&mut self.io, cx)) {
                // An upstream that takes no more may have answered all the same.
                Some(Poll::Ready(Err(WriteError::Io(error)))) => unwritten = Some(error),
                Some(Poll::Ready(Err(WriteError::Body(error)))) => {
                    return Poll::Ready(Err(RequestBroken(error).into()));
                }
                None | Some(Poll::Ready(Ok(())) | Poll::Pending) => {}
            }
            self.poll_head(cx, expected, limits)
        });
        match head.await {
            Ok(mut head) => {
                head.keeps_open &= unwritten.is_none();
                let is_done = unwritten.is_some() || request.is_done();
                Ok(AnsweredExchange { head, rest: (!is_done).then_some(request) })
            }
            Err(_) if unwritten.is_some() && !request.began() => Err(NoHead::NothingSent(request)),
            Err(error) if !request.began() => Err(NoHead::Failed(SendError::NothingSent(error))),
            Err(error) => Err(NoHead::Failed(SendError::Unanswered(error))),
        }
    }

    fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        expected: ExpectedAnswer<'_>,
        limits: HeadLimits,
    ) -> Poll<Result<Head, BoxError>> {
        loop {
            if !self.buffer.is_empty()
                && let Some(head) = head::take(&mut self.buffer, expected, limits)?
            {
                return Poll::Ready(Ok(head));
            }
            if ready!(self.poll_read(cx, READ_BYTES))? == 0 {
                return Poll::Ready(Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()));
            }
        }
    }

    /// Reads what has come; zero bytes mean that nothing more will.
    pub(super) fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        expected: usize,
    ) -> Poll<io::Result<usize>> {
        ready!(self.io.poll_readable(cx))?;
        self.buffer.reserve(expected.clamp(READ_BYTES, READ_BYTES_MAX));
        pin!(self.io.read_buf(&mut self.buffer)).poll(cx)
    }

    /// Goes on sending what is left of a request while its answer is read.
    pub(super) fn poll_rest(
        &mut self,
        cx: &mut Context<'_>,
        rest: &mut UnwrittenRequest,
    ) -> Poll<Result<(), WriteError>> {
        rest.poll_write(&mut self.io, cx)
    }
}
