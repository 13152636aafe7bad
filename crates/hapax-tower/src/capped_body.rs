//! Bodies in memory: what was read of one, up to a cap.

use std::{future::poll_fn, pin::Pin};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use crate::body::BoxError;

/// The pieces of a body, as they come. A body of one piece, the usual case, is not copied.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    first: Bytes,
    all: BytesMut,
    trailers: Option<Box<HeaderMap>>,
}

/// Whether a body came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// There is more of it than the cap.
    Larger,
}

impl Gathered {
    /// What was read before.
    pub(crate) fn begun(first: Bytes) -> Self {
        Self { first, ..Self::default() }
    }

    pub(crate) fn add(&mut self, data: Bytes) {
        if self.len() == 0 {
            self.first = data;
        } else {
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
            self.all.extend_from_slice(&data);
        }
    }

    /// Reads on until the end, or until there are more than `cap` bytes; an error means that the
    /// body ended early.
    pub(crate) async fn read<B>(
        &mut self,
        mut body: Pin<&mut B>,
        cap: usize,
    ) -> Result<Extent, BoxError>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<BoxError>,
    {
        while self.len() <= cap {
            let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await else {
                return Ok(Extent::Whole);
            };
            match frame.map_err(Into::into)?.into_data() {
                Ok(data) => self.add(data),
                Err(frame) => self.trailers = frame.into_trailers().ok().map(Box::new),
            }
        }
        Ok(Extent::Larger)
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.all.len()
    }

    pub(crate) fn joined(self) -> Bytes {
        self.into_parts().0
    }

    /// The body, and the trailers that came after it.
    pub(crate) fn into_parts(self) -> (Bytes, Option<Box<HeaderMap>>) {
        let bytes = if self.all.is_empty() { self.first } else { self.all.freeze() };
        (bytes, self.trailers)
    }
}
