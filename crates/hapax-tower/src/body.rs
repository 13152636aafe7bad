//! The one body type: what the inner service is given, and what a client is answered with.

use std::{
    any::Any,
    error::Error,
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use tokio::sync::mpsc;

/// Any error of a body or a service.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A request or response body: whole in memory, or on its way.
///
/// ```
/// use bytes::Bytes;
/// use hapax_tower::Body;
///
/// let body = Body::from(Bytes::from_static(b"paid"));
/// assert!(body.is_whole() && body.copy().is_some());
/// ```
pub struct Body(BodyKind);

enum BodyKind {
    Whole(Bytes),
    OnItsWay(UnsyncBoxBody<Bytes, BoxError>),
    /// A pipe that ends without [`PipedPiece::End`] broke off.
    Piped(mpsc::Receiver<PipedPiece>),
}

/// What goes through the pipe of a body that somebody else reads.
#[derive(Debug)]
pub(crate) enum PipedPiece {
    Data(Bytes),
    /// Nothing follows but these trailers, if there are any.
    End(HeaderMap),
}

impl Body {
    /// A body that passes on another one. One without a byte needs nobody to be asked for it.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let mut body = Some(body);
        if let Some(same) = (&mut body as &mut dyn Any).downcast_mut::<Option<Self>>() {
            return same.take().unwrap_or_else(Self::empty);
        }
        match body.filter(|body| !body.is_end_stream()) {
            Some(body) => Self(BodyKind::OnItsWay(body.map_err(Into::into).boxed_unsync())),
            None => Self::empty(),
        }
    }

    /// Whether all of it is in memory.
    pub fn is_whole(&self) -> bool {
        matches!(self.0, BodyKind::Whole(_))
    }

    /// The same body once more, if all of it is in memory.
    pub fn copy(&self) -> Option<Self> {
        match &self.0 {
            BodyKind::Whole(bytes) => Some(Self(BodyKind::Whole(bytes.clone()))),
            BodyKind::OnItsWay(_) | BodyKind::Piped(_) => None,
        }
    }

    /// A body without a byte.
    pub fn empty() -> Self {
        Self(BodyKind::Whole(Bytes::new()))
    }

    /// A body that hands on what somebody else reads.
    pub(crate) fn piped(pipe: mpsc::Receiver<PipedPiece>) -> Self {
        Self(BodyKind::Piped(pipe))
    }
}

impl From<Bytes> for Body {
    fn from(bytes: Bytes) -> Self {
        Self(BodyKind::Whole(bytes))
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            BodyKind::Whole(bytes) => write!(f, "Body({} bytes)", bytes.len()),
            BodyKind::OnItsWay(_) | BodyKind::Piped(_) => f.write_str("Body(..)"),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &mut self.0 {
            BodyKind::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            BodyKind::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            BodyKind::OnItsWay(body) => Pin::new(body).poll_frame(cx),
            BodyKind::Piped(pipe) => {
                let next = ready!(pipe.poll_recv(cx));
                if !matches!(next, Some(PipedPiece::Data(_))) {
                    self.0 = BodyKind::Whole(Bytes::new());
                }
                Poll::Ready(match next {
                    Some(PipedPiece::Data(chunk)) => Some(Ok(Frame::data(chunk))),
                    Some(PipedPiece::End(trailers)) if trailers.is_empty() => None,
                    Some(PipedPiece::End(trailers)) => Some(Ok(Frame::trailers(trailers))),
                    None => Some(Err("the response broke off".into())),
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.0 {
            BodyKind::Whole(bytes) => bytes.is_empty(),
            BodyKind::OnItsWay(body) => body.is_end_stream(),
            BodyKind::Piped(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.0 {
            BodyKind::Whole(bytes) => SizeHint::with_exact(u64::try_from(bytes.len()).unwrap_or(0)),
            BodyKind::OnItsWay(body) => body.size_hint(),
            BodyKind::Piped(_) => SizeHint::default(),
        }
    }
}
