//! Bodies that are kept in memory, and those that turn out too large for it.

use std::{
    future::poll_fn,
    pin::{Pin, pin},
    task::{Context, Poll},
};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Full};

use crate::{Body, BoxError};

/// A body that arrived whole, and can be sent any number of times.
#[derive(Debug, Clone, Default)]
pub(super) struct Whole {
    pub(super) bytes: Bytes,
    trailers: Option<Box<HeaderMap>>,
}

/// What was read of a body.
pub(super) enum Read {
    Whole(Whole),
    /// It is larger than the limit: what was read, and the rest as it comes.
    Larger(Body),
}

impl Whole {
    pub(super) fn body(&self) -> Body {
        match &self.trailers {
            None => Body::from(self.bytes.clone()),
            Some(trailers) => {
                let trailers = HeaderMap::clone(trailers);
                let last = std::future::ready(Some(Ok(trailers)));
                Body::new(Full::new(self.bytes.clone()).with_trailers(last))
            }
        }
    }
}

/// Reads a body up to the limit.
pub(super) async fn read<B>(body: B, bytes_max: usize) -> Result<Read, BoxError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (least, most) = (body.size_hint().lower(), body.size_hint().upper());
    if exceeds(least, bytes_max) {
        return Ok(Read::Larger(Body::new(body)));
    }
    if most.is_some_and(|most| !exceeds(most, bytes_max)) {
        // What says how long it is need not be taken along if it turns out longer.
        return match gather(pin!(body), bytes_max).await? {
            Gathered::All(whole) => Ok(Read::Whole(whole)),
            Gathered::Part(_) => Err("the body is longer than it said".into()),
        };
    }
    let mut body = Body::new(body);
    match gather(Pin::new(&mut body), bytes_max).await? {
        Gathered::All(whole) => Ok(Read::Whole(whole)),
        Gathered::Part(begun) => Ok(Read::Larger(Body::new(Begun { begun, rest: body }))),
    }
}

fn exceeds(bytes: u64, bytes_max: usize) -> bool {
    usize::try_from(bytes).map_or(true, |bytes| bytes > bytes_max)
}

enum Gathered {
    All(Whole),
    Part(Bytes),
}

async fn gather<B>(mut body: Pin<&mut B>, bytes_max: usize) -> Result<Gathered, BoxError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let (mut first, mut more, mut trailers) = (Bytes::new(), BytesMut::new(), None);
    while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
        match frame.map_err(Into::into)?.into_data() {
            // Most bodies are one piece, which is not copied.
            Ok(data) if first.is_empty() => first = data,
            Ok(data) => {
                if more.is_empty() {
                    more.extend_from_slice(&first);
                }
                more.extend_from_slice(&data);
            }
            Err(frame) => trailers = frame.into_trailers().ok().map(Box::new),
        }
        if first.len().max(more.len()) > bytes_max {
            return Ok(Gathered::Part(joined(first, more)));
        }
    }
    Ok(Gathered::All(Whole { bytes: joined(first, more), trailers }))
}

fn joined(first: Bytes, more: BytesMut) -> Bytes {
    if more.is_empty() { first } else { more.freeze() }
}

/// A body whose beginning was read already.
struct Begun {
    begun: Bytes,
    rest: Body,
}

impl http_body::Body for Begun {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if !self.begun.is_empty() {
            return Poll::Ready(Some(Ok(Frame::data(std::mem::take(&mut self.begun)))));
        }
        Pin::new(&mut self.rest).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.begun.is_empty() && self.rest.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let begun = u64::try_from(self.begun.len()).unwrap_or(u64::MAX);
        let rest = self.rest.size_hint();
        let mut both = SizeHint::new();
        both.set_lower(rest.lower().saturating_add(begun));
        if let Some(most) = rest.upper().and_then(|most| most.checked_add(begun)) {
            both.set_upper(most);
        }
        both
    }
}
