//! How far the upload of a request has come, so that a long one is not taken for a late answer.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hapax_tower::{Body, BoxError};
use http_body::{Frame, SizeHint};
use tokio::time::timeout;

/// A body up to this size is sent in no time worth watching.
const SMALL_BYTES_MAX: u64 = 64 << 10;

/// Counts the pieces of a body as they are sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Upload(Option<Arc<AtomicU64>>);

impl Upload {
    /// The body, and how to see how far it has come.
    pub(crate) fn watch(body: Body) -> (Body, Self) {
        let size = http_body::Body::size_hint(&body).upper();
        if size.is_some_and(|size| size <= SMALL_BYTES_MAX) {
            return (body, Self(None));
        }
        let sent = Arc::<AtomicU64>::default();
        (Body::new(Counted { body, sent: Arc::clone(&sent) }), Self(Some(sent)))
    }

    /// Waits for an answer, for as long as `patience` after the last piece was sent at the least,
    /// and twice that at the most; `None` if it did not come.
    pub(crate) async fn answer<T>(
        &self,
        mut answering: Pin<&mut impl Future<Output = T>>,
        patience: Duration,
    ) -> Option<T> {
        loop {
            let before = self.sent();
            if let Ok(answer) = timeout(patience, answering.as_mut()).await {
                return Some(answer);
            }
            if self.sent() == before {
                return None;
            }
        }
    }

    fn sent(&self) -> u64 {
        self.0.as_ref().map_or(0, |sent| sent.load(Relaxed))
    }
}

struct Counted {
    body: Body,
    sent: Arc<AtomicU64>,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_ready() {
            self.sent.fetch_add(1, Relaxed);
        }
        polled
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
    use std::pin::pin;

    use http_body_util::{BodyExt, StreamBody};
    use tokio::time::sleep;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A body of this many pieces, each of which takes `pause` to come.
    fn slow(pieces: u32, pause: Duration) -> Body {
        let pieces = futures_util::stream::unfold(0, move |sent| async move {
            sleep(pause).await;
            (sent < pieces).then(|| (Ok::<_, BoxError>(Frame::data(Bytes::from("x"))), sent + 1))
        });
        Body::new(StreamBody::new(Box::pin(pieces)))
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_may_take_longer_than_an_answer() {
        let (body, upload) = Upload::watch(slow(10, PATIENCE / 2));
        let answer = upload.answer(pin!(body.collect()), PATIENCE).await;
        assert_eq!(answer.unwrap().unwrap().to_bytes().len(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_does_not_come_after_the_upload_is_overdue() {
        let (body, upload) = Upload::watch(slow(10, PATIENCE / 2));
        let silent = async {
            let _ = body.collect().await;
            std::future::pending::<()>().await;
        };
        assert!(upload.answer(pin!(silent), PATIENCE).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_upstream_that_reads_nothing_is_overdue() {
        let (body, upload) = Upload::watch(slow(1, Duration::ZERO));
        let silent = pin!(std::future::pending::<()>());
        assert!(upload.answer(silent, PATIENCE).await.is_none());
        drop(body);
    }
}
