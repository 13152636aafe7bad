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
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        // Trailers are neither compared nor stored.
        let Ok(data) = frame?.into_data() else { continue };
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            all.extend_from_slice(&std::mem::take(&mut first));
            all.extend_from_slice(&data);
        }
        if first.len() + all.len() > cap {
            return Ok(Captured::Larger { read: joined(first, all), rest: body });
        }
    }
    Ok(Captured::Whole(joined(first, all)))
}

/// A body of one chunk, the usual case, is not copied.
fn joined(first: Bytes, all: BytesMut) -> Bytes {
    if all.is_empty() { first } else { all.freeze() }
}
