//! The body of an answer, which puts its connection back when it ends.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use hapax_tower::Body;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use tokio::sync::OwnedSemaphorePermit;

use super::pool::{Idle, Sender};

/// A body that is still on its way. Dropped early, it takes its connection with it.
pub(crate) struct Returning {
    body: Incoming,
    lent: Option<Lent>,
}

struct Lent {
    sender: Sender,
    idle: Arc<Idle>,
    room: OwnedSemaphorePermit,
}

impl Returning {
    pub(crate) fn body(
        body: Incoming,
        sender: Sender,
        idle: Arc<Idle>,
        room: OwnedSemaphorePermit,
    ) -> Body {
        let lent = Lent { sender, idle, room };
        if http_body::Body::is_end_stream(&body) {
            lent.put_back();
            return Body::empty();
        }
        Body::new(Self { body, lent: Some(lent) })
    }

    fn put_back_at_the_end(&mut self) {
        if http_body::Body::is_end_stream(&self.body)
            && let Some(lent) = self.lent.take()
        {
            lent.put_back();
        }
    }
}

impl Lent {
    fn put_back(self) {
        self.idle.put_back(self.sender);
        drop(self.room);
    }
}

impl http_body::Body for Returning {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(_)) => self.put_back_at_the_end(),
            Some(Err(_)) => self.lent = None,
            None => {
                if let Some(lent) = self.lent.take() {
                    lent.put_back();
                }
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
