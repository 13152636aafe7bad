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
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::BodyExt;
use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use super::{trailers, turns::Turns};
use crate::{
    client::{RequestBroken, SendError},
    size_hint,
};

/// Counts the pieces of a body as they are sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Upload(Option<Arc<AtomicU64>>);

impl Upload {
    /// Waits until some of the body is there, and takes a turn for the rest, if there is one.
    ///
    /// Gives back the body and how to see how far it has come. A client that sends nothing has
    /// nobody wait for it but us.
    pub(super) async fn begin(mut body: Body, turns: &Turns) -> Result<(Body, Self), SendError> {
        if body.is_whole() {
            return Ok((body, Self(None)));
        }
        let first = match body.frame().await {
            Some(Ok(first)) => first,
            Some(Err(error)) => {
                return Err(SendError::NothingSent(RequestBroken(error).into()));
            }
            None => return Ok((Body::empty(), Self(None))),
        };
        let first = match first.into_data() {
            Ok(data) if body.is_end_stream() => return Ok((Body::from(data), Self(None))),
            Ok(data) => Some(Frame::data(data)),
            // Trailers: nothing follows them.
            Err(_) => return Ok((Body::empty(), Self(None))),
        };
        let turn = Some(turns.upload().await?);
        Ok(Self::watch(UploadBody { first, body, sent: Arc::default(), turn }))
    }

    fn watch(body: UploadBody) -> (Body, Self) {
        let sent = Arc::clone(&body.sent);
        (Body::new(body), Self(Some(sent)))
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

struct UploadBody {
    /// What was there before anything was sent.
    first: Option<Frame<Bytes>>,
    body: Body,
    sent: Arc<AtomicU64>,
    /// Given back when all of it has come.
    turn: Option<OwnedSemaphorePermit>,
}

impl http_body::Body for UploadBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(first) = self.first.take() {
            self.sent.fetch_add(1, Relaxed);
            return Poll::Ready(Some(Ok(first)));
        }
        let polled = Pin::new(&mut self.body).poll_frame(cx).map_ok(trailers::of_frame);
        if let Poll::Ready(frame) = &polled {
            self.sent.fetch_add(1, Relaxed);
            if frame.is_none() || self.body.is_end_stream() {
                self.turn = None;
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let first = self.first.as_ref().and_then(Frame::data_ref).map_or(0, Bytes::len);
        size_hint::after(first, &self.body.size_hint())
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use http_body_util::StreamBody;
    use tokio::time::sleep;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// A body of this many pieces, each of which takes `pause` to come.
    fn slow(pieces: u32, pause: Duration) -> (Body, Upload) {
        let pieces = futures_util::stream::unfold(0, move |sent| async move {
            sleep(pause).await;
            (sent < pieces).then(|| (Ok::<_, BoxError>(Frame::data(Bytes::from("x"))), sent + 1))
        });
        let body = Body::new(StreamBody::new(Box::pin(pieces)));
        Upload::watch(UploadBody { first: None, body, sent: Arc::default(), turn: None })
    }

    #[tokio::test(start_paused = true)]
    async fn an_upload_may_take_longer_than_an_answer() {
        let (body, upload) = slow(10, PATIENCE / 2);
        let answer = upload.answer(pin!(body.collect()), PATIENCE).await;
        assert_eq!(answer.unwrap().unwrap().to_bytes().len(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_does_not_come_after_the_upload_is_overdue() {
        let (body, upload) = slow(10, PATIENCE / 2);
        let silent = async {
            let _ = body.collect().await;
            std::future::pending::<()>().await;
        };
        assert!(upload.answer(pin!(silent), PATIENCE).await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn an_upstream_that_reads_nothing_is_overdue() {
        let (body, upload) = slow(1, Duration::ZERO);
        let silent = pin!(std::future::pending::<()>());
        assert!(upload.answer(silent, PATIENCE).await.is_none());
        drop(body);
    }
}
