//! Reading a body into memory, up to a cap.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;

use crate::body::{Body, BoxError};

/// What came out of a body.
#[derive(Debug)]
pub(crate) enum Captured {
    /// All of it.
    Whole(Bytes),
    /// More than the cap: what was read, and the rest.
    Larger { read: Bytes, rest: Body },
}

/// Reads up to `cap` bytes; an error means that the body ended early.
pub(crate) async fn capture(mut body: Body, cap: usize) -> Result<Captured, BoxError> {
    let mut gathered = Gathered::default();
    while let Some(frame) = body.frame().await {
        // Trailers are neither compared nor stored.
        let Ok(data) = frame?.into_data() else { continue };
        gathered.add(data);
        if gathered.len() > cap {
            return Ok(Captured::Larger { read: gathered.joined(), rest: body });
        }
    }
    Ok(Captured::Whole(gathered.joined()))
}

/// The pieces of a body, as they come. A body of one piece, the usual case, is not copied.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    first: Bytes,
    all: BytesMut,
}

impl Gathered {
    pub(crate) fn add(&mut self, data: Bytes) {
        if self.len() == 0 {
            self.first = data;
        } else {
            self.all.extend_from_slice(&std::mem::take(&mut self.first));
            self.all.extend_from_slice(&data);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len() + self.all.len()
    }

    pub(crate) fn joined(self) -> Bytes {
        if self.all.is_empty() { self.first } else { self.all.freeze() }
    }
}
