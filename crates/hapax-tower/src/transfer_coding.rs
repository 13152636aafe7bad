//! How the body of an HTTP/1.1 message is coded for its way.

use http::{HeaderMap, header::TRANSFER_ENCODING};

/// What `Transfer-Encoding` says about a message.
///
/// Chunks are undone by whoever reads the message, and the header goes with them. Nobody undoes
/// anything else: bytes in another coding would be passed on, compared and stored as if they were
/// the body itself.
///
/// ```
/// use hapax_tower::TransferCoding;
/// use http::{HeaderMap, HeaderValue, header::TRANSFER_ENCODING};
///
/// let gzip = HeaderValue::from_static("gzip, chunked");
/// let headers = HeaderMap::from_iter([(TRANSFER_ENCODING, gzip)]);
/// assert_eq!(TransferCoding::of(&headers), TransferCoding::Other);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferCoding {
    /// Nothing.
    Absent,
    /// The body comes in chunks, and is not coded otherwise.
    Chunked,
    /// Chunks within chunks, which RFC 9112 forbids.
    ChunkedTwice,
    /// The body is coded otherwise, or the header names no coding at all.
    Other,
}

impl TransferCoding {
    /// What these headers say, on however many lines.
    pub fn of(headers: &HeaderMap) -> Self {
        if !headers.contains_key(TRANSFER_ENCODING) {
            return Self::Absent;
        }
        let lines = headers.get_all(TRANSFER_ENCODING).iter();
        let names = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
        let mut chunked = 0;
        for name in names.map(<[u8]>::trim_ascii).filter(|name| !name.is_empty()) {
            if !name.eq_ignore_ascii_case(b"chunked") {
                return Self::Other;
            }
            chunked += 1;
        }
        match chunked {
            0 => Self::Other,
            1 => Self::Chunked,
            _ => Self::ChunkedTwice,
        }
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn only_chunks_alone_are_chunks() {
        use TransferCoding::{Absent, Chunked, ChunkedTwice, Other};
        let cases: [(&[&str], TransferCoding); 14] = [
            (&[], Absent),
            (&["chunked"], Chunked),
            (&["CHUNKED"], Chunked),
            (&[" , chunked ,"], Chunked),
            (&["chunked", ""], Chunked),
            (&["chunked, chunked"], ChunkedTwice),
            (&["chunked", "chunked"], ChunkedTwice),
            (&["gzip, chunked"], Other),
            (&["gzip", "chunked"], Other),
            (&["identity, chunked"], Other),
            (&["chunked, identity"], Other),
            (&["chunked;q=1"], Other),
            (&["xchunked"], Other),
            (&[""], Other),
        ];
        for (lines, coding) in cases {
            let lines =
                lines.iter().map(|line| (TRANSFER_ENCODING, HeaderValue::from_static(line)));
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(name, value);
            }
            assert_eq!(TransferCoding::of(&headers), coding, "{headers:?}");
        }
    }
}
