//! Reading a body into memory, up to a cap.

use std::pin::Pin;

use bytes::Bytes;

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
pub async fn capture(mut body: Body, cap: usize) -> Result<Captured, BoxError> {
    let mut gathered = Gathered::default();
    match gathered.read(Pin::new(&mut body), cap).await? {
        Extent::Whole => Ok(Captured::Whole(gathered.joined())),
        Extent::Larger => Ok(Captured::Larger { read: gathered.joined(), rest: body }),
    }
}
