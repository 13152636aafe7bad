//! Reading a body into memory, up to a cap.

use std::pin::Pin;

use bytes::Bytes;
use http::HeaderMap;

use crate::{
    body::{Body, BoxError},
    capped_body::{Extent, Gathered},
};

/// What came out of a body.
#[derive(Debug)]
pub enum Captured {
    /// All of it.
    Whole(Bytes),
    /// More than the cap: what was read, and the rest.
    Larger {
        /// Somewhat more than the cap.
        read: Bytes,
        /// As it comes.
        rest: Body,
    },
}

/// Reads up to `cap` bytes; an error means that the body ended early. Trailers are left out.
///
/// ```
/// use bytes::Bytes;
/// use hapax_tower::{Body, Captured, capture};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), hapax_tower::BoxError> {
/// let body = Body::from(Bytes::from_static(b"paid"));
/// let Captured::Whole(bytes) = capture(body, 1 << 20).await? else { return Ok(()) };
/// assert_eq!(bytes, "paid");
/// # Ok(())
/// # }
/// ```
pub async fn capture(body: Body, cap: usize) -> Result<Captured, BoxError> {
    Ok(capture_with_trailers(body, cap).await?.0)
}

/// The same, with the trailers of a body that came to its end.
pub(crate) async fn capture_with_trailers(
    mut body: Body,
    cap: usize,
) -> Result<(Captured, Option<Box<HeaderMap>>), BoxError> {
    let mut gathered = Gathered::default();
    let extent = gathered.read(Pin::new(&mut body), cap).await?;
    let (read, trailers) = gathered.into_parts();
    Ok(match extent {
        Extent::Whole => (Captured::Whole(read), trailers),
        Extent::Larger => (Captured::Larger { read, rest: body }, None),
    })
}
