//! A body that may not stop half-way for long.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hapax_tower::BoxError;
use http_body::{Frame, SizeHint};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Sleep, sleep},
};

use super::trailers;

/// Passes a body on, and fails when its next piece takes longer than allowed.
pub(super) struct Stalling<B> {
    body: B,
    patience: Duration,
    /// Runs while a piece is awaited; most bodies are there at once and need none.
    timer: Option<Pin<Box<Sleep>>>,
    /// The right to an exchange with the upstream, given back when this is over.
    _turn: OwnedSemaphorePermit,
}

impl<B> Stalling<B> {
    pub(super) fn new(body: B, patience: Duration, turn: OwnedSemaphorePermit) -> Self {
        Self { body, patience, timer: None, _turn: turn }
    }
}

impl<B> http_body::Body for Stalling<B>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            self.timer = None;
            return Poll::Ready(
                frame.map(|frame| frame.map(trailers::of_frame).map_err(Into::into)),
            );
        }
        let patience = self.patience;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(patience)));
        timer.as_mut().poll(cx).map(|()| Some(Err(Stalled.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A body stopped half-way for longer than allowed.
#[derive(Debug, thiserror::Error)]
#[error("the next piece of a body did not come in time")]
struct Stalled;
