//! Keeps why the body of a request broke off, where somebody else reads it and does not tell.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use bytes::Bytes;
use hapax_tower::{Body, BoxError};
use http::Request;
use http_body::{Frame, SizeHint};

use super::error::{RequestBroken, SendError};

/// What became of a request's body: nothing to tell for one that was whole from the beginning.
#[derive(Debug, Default)]
pub(super) struct Breaking(Option<Arc<Mutex<Option<BoxError>>>>);

impl Breaking {
    /// The request, and how to see afterwards whether its own body was what failed.
    pub(super) fn watch(request: Request<Body>) -> (Request<Body>, Self) {
        if request.body().is_whole() {
            return (request, Self(None));
        }
        let cause = Arc::<Mutex<Option<BoxError>>>::default();
        let kept = Arc::clone(&cause);
        (request.map(|body| Body::new(WatchedBody { body, cause })), Self(Some(kept)))
    }

    /// The error of an exchange that failed because of its own request.
    pub(super) fn blame(self) -> Option<SendError> {
        let cause = self.0?.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        Some(SendError::Unanswered(RequestBroken(cause).into()))
    }
}

struct WatchedBody {
    body: Body,
    cause: Arc<Mutex<Option<BoxError>>>,
}

impl http_body::Body for WatchedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        Pin::new(&mut self.body).poll_frame(cx).map(|frame| match frame? {
            Ok(frame) => Some(Ok(frame)),
            Err(cause) => {
                *self.cause.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause);
                Some(Err("the request ended early".into()))
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
