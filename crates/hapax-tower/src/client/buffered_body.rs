//! Bodies that are kept in memory, and those that turn out too large for it.

use std::{
    pin::{Pin, pin},
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use http_body_util::{BodyExt, Full};

use crate::{
    Body, BoxError,
    capped_body::{Extent, Gathered},
};

/// A body that arrived whole, and can be sent any number of times.
#[derive(Debug, Clone, Default)]
pub(super) struct Whole {
    pub(super) bytes: Bytes,
    trailers: Option<Box<HeaderMap>>,
}

/// What was read of a body.
pub(super) enum BodyRead {
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

impl From<Gathered> for Whole {
    fn from(gathered: Gathered) -> Self {
        let (bytes, trailers) = gathered.into_parts();
        Self { bytes, trailers }
    }
}

/// Reads a body up to the limit.
pub(super) async fn read<B>(body: B, bytes_max: usize) -> Result<BodyRead, BoxError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (least, most) = (body.size_hint().lower(), body.size_hint().upper());
    if exceeds(least, bytes_max) {
        return Ok(BodyRead::Larger(Body::new(body)));
    }
    let mut gathered = Gathered::default();
    if most.is_some_and(|most| !exceeds(most, bytes_max)) {
        // What says how long it is need not be taken along if it turns out longer.
        return match gathered.read(pin!(body), bytes_max).await? {
            Extent::Whole => Ok(BodyRead::Whole(gathered.into())),
            Extent::Larger => Err("the body is longer than it said".into()),
        };
    }
    let mut body = Body::new(body);
    match gathered.read(Pin::new(&mut body), bytes_max).await? {
        Extent::Whole => Ok(BodyRead::Whole(gathered.into())),
        Extent::Larger => {
            Ok(BodyRead::Larger(Body::new(BegunBody { begun: gathered.joined(), rest: body })))
        }
    }
}

fn exceeds(bytes: u64, bytes_max: usize) -> bool {
    usize::try_from(bytes).map_or(true, |bytes| bytes > bytes_max)
}

/// A body whose beginning was read already.
struct BegunBody {
    begun: Bytes,
    rest: Body,
}

impl http_body::Body for BegunBody {
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
