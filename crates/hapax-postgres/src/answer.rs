//! An outcome as one column: what makes it trustworthy, then what it is.
//!
//! Sixteen bytes of digest, the length of the head in four, the head, the body. The digest is of the
//! id and of everything behind it, as [`codec::seal`](hapax_core::codec::seal) made it. One column is
//! one value to send, to copy and to find, and a row of few columns is what makes a settle cheap.

use std::error::Error;

use bytes::{BufMut, Bytes, BytesMut};
use hapax_core::codec::Sealed;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

const DIGEST_BYTES: usize = 16;
const LENGTH_BYTES: usize = 4;

/// A sealed outcome on its way into its column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer<'a>(pub(crate) &'a Sealed);

impl Answer<'_> {
    fn put(self, out: &mut BytesMut) {
        let Sealed { head, body, digest } = self.0;
        out.reserve(DIGEST_BYTES + LENGTH_BYTES + head.len() + body.len());
        out.put_slice(digest);
        out.put_u32(u32::try_from(head.len()).unwrap_or(u32::MAX));
        out.put_slice(head);
        out.put_slice(body);
    }

    /// The same for a driver that takes bytes.
    #[cfg(any(feature = "deadpool", feature = "sqlx", feature = "sqlx-0_8"))]
    pub(crate) fn to_vec(self) -> Vec<u8> {
        let mut out = BytesMut::new();
        self.put(&mut out);
        out.into()
    }
}

impl ToSql for Answer<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        self.put(out);
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::BYTEA
    }

    to_sql_checked!();
}

/// What is in the column. Bytes that no outcome fits into have no head, which nobody can open.
pub(crate) fn unpack(column: &[u8]) -> Sealed {
    let mut rest = Bytes::copy_from_slice(column);
    let head_bytes = rest.get(DIGEST_BYTES..DIGEST_BYTES + LENGTH_BYTES);
    let head_bytes = head_bytes.and_then(|bytes| <[u8; LENGTH_BYTES]>::try_from(bytes).ok());
    let head_bytes = head_bytes.and_then(|bytes| usize::try_from(u32::from_be_bytes(bytes)).ok());
    let mut digest = [0; DIGEST_BYTES];
    match head_bytes {
        Some(head_bytes) if head_bytes <= rest.len() - DIGEST_BYTES - LENGTH_BYTES => {
            digest.copy_from_slice(&rest.split_to(DIGEST_BYTES));
            let mut body = rest.split_off(LENGTH_BYTES);
            let head = body.split_to(head_bytes);
            Sealed { head, body, digest }
        }
        Some(_) | None => Sealed { head: Bytes::new(), body: Bytes::new(), digest },
    }
}

#[cfg(test)]
mod tests {
    use hapax_core::{Body, OperationId, Outcome, codec};

    use super::*;

    fn outcome(body: &'static [u8]) -> Sealed {
        let body = Body::Kept(Bytes::from_static(body));
        codec::seal(OperationId::from_bytes([7; 16]), &Outcome::new(201, Vec::new(), body).unwrap())
    }

    fn column(sealed: &Sealed) -> Vec<u8> {
        let mut out = BytesMut::new();
        Answer(sealed).put(&mut out);
        out.into()
    }

    #[test]
    fn what_was_put_into_a_column_is_taken_out_of_it() {
        for body in [&b""[..], b"paid"] {
            let whole = outcome(body);
            assert_eq!(unpack(&column(&whole)), whole);
        }
    }

    #[test]
    fn a_column_that_was_cut_short_is_never_opened() {
        let whole = column(&outcome(b"paid"));
        for length in 0..whole.len() {
            let cut = unpack(&whole[..length]);
            assert!(codec::open(OperationId::from_bytes([7; 16]), &cut).is_err(), "{length}");
        }
    }
}
