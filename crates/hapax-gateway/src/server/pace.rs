//! The least rate at which the bytes of a message have to come.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hapax_tower::{BoxError, TooSlow};
use http_body::{Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

/// So many bytes, or the end, within each span of time.
///
/// What came in one span is no credit for the next: whoever sends much at once and then nothing is
/// as slow as whoever sends nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(super) bytes_min: u64,
    pub(super) span: Duration,
}

impl Pace {
    /// This rate, over each span. A rate of zero asks for one byte in each.
    pub(crate) fn new(bytes_per_second: usize, span: Duration) -> Self {
        let rate = u128::try_from(bytes_per_second).unwrap_or(u128::MAX);
        let bytes = rate.saturating_mul(span.as_millis()) / 1000;
        Self { bytes_min: u64::try_from(bytes).unwrap_or(u64::MAX).max(1), span }
    }
}

/// Passes the body of a request on, and fails with [`TooSlow`] when it falls behind its pace.
///
/// Only the time counts in which somebody waits for it: a body that nobody reads is not slow.
pub(crate) struct Paced<B> {
    body: B,
    pace: Pace,
    /// What has come in this span.
    came: u64,
    /// What is left of this span.
    left: Duration,
    /// Runs while a piece is awaited; most bodies are there at once and need none.
    waiting: Option<PieceTimer>,
}

struct PieceTimer {
    since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl<B> Paced<B> {
    pub(crate) fn new(body: B, pace: Pace) -> Self {
        Self { body, pace, came: 0, left: pace.span, waiting: None }
    }

    fn came(&mut self, bytes: usize) {
        if let Some(waiting) = self.waiting.take() {
            self.left = self.left.saturating_sub(waiting.since.elapsed());
        }
        self.came = self.came.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        if self.came >= self.pace.bytes_min {
            (self.came, self.left) = (0, self.pace.span);
        }
    }
}

impl<B> http_body::Body for Paced<B>
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
            if let Some(Ok(frame)) = &frame {
                self.came(frame.data_ref().map_or(0, Bytes::len));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let left = self.left;
        let begin = || PieceTimer { since: Instant::now(), timer: Box::pin(sleep(left)) };
        let waiting = self.waiting.get_or_insert_with(begin);
        waiting.timer.as_mut().poll(cx).map(|()| Some(Err(TooSlow.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, StreamBody};
    use tokio::time::advance;

    use super::*;

    const PACE: Pace = Pace { bytes_min: 100, span: Duration::from_secs(10) };

    /// A body of pieces of this size, each of which takes `pause` to come.
    fn pieces(count: u32, size: usize, pause: Duration) -> Paced<hapax_tower::Body> {
        let pieces = futures_util::stream::unfold(0, move |sent| async move {
            sleep(pause).await;
            let piece = Frame::data(Bytes::from(vec![b'x'; size]));
            (sent < count).then(|| (Ok::<_, BoxError>(piece), sent + 1))
        });
        Paced::new(hapax_tower::Body::new(StreamBody::new(Box::pin(pieces))), PACE)
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_may_take_as_long_as_it_likes_while_it_keeps_its_pace() {
        let steady = pieces(100, 100, Duration::from_secs(9)).collect().await.unwrap();
        assert_eq!(steady.to_bytes().len(), 10_000);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_comes_in_drops_is_too_slow_after_one_span() {
        let began = Instant::now();
        let error = pieces(1000, 1, Duration::from_secs(1)).collect().await.unwrap_err();
        assert!(TooSlow::is_in(&*error));
        assert_eq!(began.elapsed(), PACE.span);
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_at_once_is_no_credit_for_a_stall() {
        let burst =
            futures_util::stream::iter([Ok::<_, BoxError>(Frame::data(Bytes::from(vec![
                b'x';
                10_000
            ])))]);
        let stalled = futures_util::StreamExt::chain(burst, futures_util::stream::pending());
        let began = Instant::now();
        let error = Paced::new(StreamBody::new(stalled), PACE).collect().await.unwrap_err();
        assert!(TooSlow::is_in(&*error));
        assert_eq!(began.elapsed(), PACE.span);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_nobody_reads_is_not_slow() {
        let mut body = pieces(3, 10, Duration::from_secs(3));
        for _ in 0..3 {
            advance(PACE.span).await;
            assert!(body.frame().await.unwrap().is_ok());
        }
    }
}
