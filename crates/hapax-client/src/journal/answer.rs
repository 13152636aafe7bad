use bytes::Bytes;
use hapax_core::{
    Body, Header, Outcome,
    limits::{OUTCOME_BODY_BYTES_MAX, OUTCOME_HEADER_BYTES_MAX, OUTCOME_HEADERS_MAX},
};
use http::{HeaderMap, StatusCode};

/// An answer as it is kept: of headers as many as fit, of a body that is too large its length.
pub fn outcome(status: StatusCode, headers: &HeaderMap, body: Bytes) -> Outcome {
    let mut room = OUTCOME_HEADER_BYTES_MAX;
    let mut kept = Vec::with_capacity(headers.len().min(OUTCOME_HEADERS_MAX));
    for (name, value) in headers {
        let len = name.as_str().len() + value.len();
        if len <= room && kept.len() < OUTCOME_HEADERS_MAX {
            room -= len;
            let value = Bytes::copy_from_slice(value.as_bytes());
            kept.push(Header { name: name.as_str().to_owned(), value });
        }
    }
    let body = match body.len() {
        0..=OUTCOME_BODY_BYTES_MAX => Body::Kept(body),
        len => Body::NotKept { len: u64::try_from(len).unwrap_or(u64::MAX) },
    };
    let status = status.as_u16();
    Outcome::new(status, kept, body).unwrap_or_else(|_| Outcome::bare(status))
}
