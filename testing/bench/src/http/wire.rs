//! The bytes on the wire: as much of HTTP/1.1 as two ends that know each other need.

use std::ops::Range;

use crate::request;

/// The header that names an operation.
pub(super) const KEY_HEADER: &str = "idempotency-key";
/// Largest head either end reads, in bytes.
pub(super) const HEAD_BYTES_MAX: usize = 16 << 10;

const KEY_DIGITS: usize = 32;
const REFERENCE_DIGITS: usize = 20;

/// One request, ready to be sent. Every number makes another key and another body of the same
/// length, written over the last one.
#[derive(Debug, Clone)]
pub(super) struct PreparedRequest {
    bytes: Vec<u8>,
    key_at: usize,
    reference_at: usize,
}

impl PreparedRequest {
    pub(super) fn new() -> Self {
        // Any number of five digits gives the longest body there is.
        const MODEL: u64 = 10_000;
        let body = request::body(MODEL);
        let reference = format!("{MODEL:0REFERENCE_DIGITS$}");
        let mut bytes = head(&"0".repeat(KEY_DIGITS), body.len()).into_bytes();
        let key_at = bytes.windows(KEY_DIGITS).position(|window| window == [b'0'; KEY_DIGITS]);
        let reference_at = body.find(&reference).map(|at| at + bytes.len());
        bytes.extend_from_slice(body.as_bytes());
        Self {
            bytes,
            key_at: key_at.unwrap_or_default(),
            reference_at: reference_at.unwrap_or_default(),
        }
    }

    /// The request with this number.
    pub(super) fn numbered(&mut self, number: u64) -> &[u8] {
        let key = u128::from(mixed(number)) << 64 | u128::from(mixed(!number));
        let (key_at, reference_at) = (self.key_at, self.reference_at);
        digits(&mut self.bytes[key_at..key_at + KEY_DIGITS], key, 16);
        let reference = &mut self.bytes[reference_at..reference_at + REFERENCE_DIGITS];
        digits(reference, u128::from(number), 10);
        &self.bytes
    }
}

/// The head of a request with a body of this many bytes.
pub(super) fn head(key: &str, body_bytes: usize) -> String {
    format!(
        "POST /payments HTTP/1.1\r\nHost: bench.test\r\nAuthorization: Bearer bench\r\n\
         Content-Type: application/json\r\nIdempotency-Key: \"{key}\"\r\n\
         Content-Length: {body_bytes}\r\n\r\n"
    )
}

/// What an answer says, as far as it matters here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HttpAnswer {
    pub(super) status: u16,
    /// Where the body is.
    pub(super) body: Range<usize>,
}

/// The answer at the start of these bytes; `None` until all of it has come.
pub(super) fn answer(bytes: &[u8]) -> Result<Option<HttpAnswer>, UnreadableAnswer> {
    let Some(start) = head_end(bytes)? else { return Ok(None) };
    let status = bytes.get(9..12).and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
    let status =
        status.filter(|_| bytes.starts_with(b"HTTP/1.1 ")).ok_or(UnreadableAnswer::NoStatus)?;
    let end = start.saturating_add(body_bytes(&bytes[..start])?.ok_or(UnreadableAnswer::NoLength)?);
    Ok((bytes.len() >= end).then_some(HttpAnswer { status, body: start..end }))
}

/// Where the body starts; `None` until the whole head has come.
pub(super) fn head_end(bytes: &[u8]) -> Result<Option<usize>, UnreadableAnswer> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4);
    if end.unwrap_or(bytes.len()) > HEAD_BYTES_MAX {
        return Err(UnreadableAnswer::HeadTooLarge);
    }
    Ok(end)
}

/// The length that a head announces; `None` if it announces none.
pub(super) fn body_bytes(head: &[u8]) -> Result<Option<usize>, UnreadableAnswer> {
    let Some(length) = header(head, "content-length") else { return Ok(None) };
    let length = str::from_utf8(length).ok().and_then(|digits| digits.parse().ok());
    length.map(Some).ok_or(UnreadableAnswer::NoLength)
}

/// The value of a header, by its name in any case.
pub(super) fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a [u8]> {
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let value = line.get(name.len()..)?.strip_prefix(b":")?;
        line[..name.len()].eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
    })
}

/// Why bytes are no answer that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnreadableAnswer {
    #[error("a head is larger than {HEAD_BYTES_MAX} bytes")]
    HeadTooLarge,
    #[error("an answer has no status")]
    NoStatus,
    #[error("a message does not announce its length")]
    NoLength,
}

/// Another number for every number, that does not look like its neighbours.
fn mixed(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

/// Fills the place with the last digits of a number.
fn digits(place: &mut [u8], number: u128, base: u128) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut rest = number;
    for digit in place.iter_mut().rev() {
        *digit = DIGITS[usize::try_from(rest % base).unwrap_or(0)];
        rest /= base;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_number_has_a_key_and_a_body_of_its_own() {
        let mut request = PreparedRequest::new();
        let mut keys = HashSet::new();
        let mut bodies = HashSet::new();
        for number in (0..1000).chain([u64::MAX]) {
            let bytes = request.numbered(number).to_vec();
            let start = head_end(&bytes).unwrap().unwrap();
            assert_eq!(body_bytes(&bytes[..start]), Ok(Some(bytes.len() - start)));
            let reference = format!(r#""reference":"{number:020}""#);
            let body = str::from_utf8(&bytes[start..]).unwrap().to_owned();
            assert!(body.contains(&reference), "{body}");
            keys.insert(header(&bytes[..start], KEY_HEADER).unwrap().to_vec());
            bodies.insert(body);
        }
        assert_eq!((keys.len(), bodies.len()), (1001, 1001));
    }

    #[test]
    fn the_same_number_is_the_same_request() {
        let mut request = PreparedRequest::new();
        let first = request.numbered(7).to_vec();
        request.numbered(8);
        assert_eq!(request.numbered(7), first);
    }

    #[test]
    fn an_answer_is_there_when_its_last_byte_is() {
        let bytes = b"HTTP/1.1 201 Created\r\ncontent-LENGTH: 3\r\nDate: now\r\n\r\nabc";
        for end in 0..bytes.len() {
            assert_eq!(answer(&bytes[..end]), Ok(None), "{end}");
        }
        let body = bytes.len() - 3..bytes.len();
        assert_eq!(answer(bytes), Ok(Some(HttpAnswer { status: 201, body })));
    }

    #[test]
    fn an_answer_that_cannot_be_measured_says_why() {
        for (bytes, why) in [
            (
                &b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"[..],
                UnreadableAnswer::NoLength,
            ),
            (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n", UnreadableAnswer::NoLength),
            (b"SMTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", UnreadableAnswer::NoStatus),
            (&[b'a'; HEAD_BYTES_MAX + 1], UnreadableAnswer::HeadTooLarge),
        ] {
            assert_eq!(answer(bytes), Err(why));
        }
    }

    #[test]
    fn a_header_is_found_by_its_whole_name() {
        let head = b"POST / HTTP/1.1\r\nX-Idempotency-Key: a\r\nIdempotency-Key:  \"b\" \r\n\r\n";
        assert_eq!(header(head, KEY_HEADER), Some(&b"\"b\""[..]));
        assert_eq!(header(head, "idempotency"), None);
    }
}
