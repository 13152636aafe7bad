//! A body in chunks, as it is taken off a buffer.

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue};
use httparse::{EMPTY_HEADER, Status, parse_chunk_size, parse_headers};

/// Longest line that says how long a chunk is, extensions included.
const SIZE_LINE_BYTES_MAX: usize = 16 << 10;
/// Largest part after the last chunk.
const TRAILER_BYTES_MAX: usize = 16 << 10;
/// Most headers after the last chunk.
const TRAILERS_MAX: usize = 100;

/// Where in a chunked body its reader is.
#[derive(Debug, Default)]
pub(super) enum Chunks {
    /// Before the line with a size.
    #[default]
    Size,
    /// In a chunk, this far from its end.
    Data(u64),
    /// Before the line break that ends a chunk.
    Break,
    /// Behind the last chunk.
    Trailers,
    End,
}

/// What comes next in a body.
pub(super) enum NextChunk {
    Data(Bytes),
    Trailers(HeaderMap),
    End,
    /// It has not come yet.
    Later,
}

/// The framing of a chunked body is broken.
#[derive(Debug, thiserror::Error)]
#[error("the chunks of the answer cannot be read")]
pub(super) struct BadChunks;

impl Chunks {
    pub(super) fn next(&mut self, buffer: &mut BytesMut) -> Result<NextChunk, BadChunks> {
        loop {
            match self {
                Self::Size => {
                    let Some(size) = size(buffer)? else { return Ok(NextChunk::Later) };
                    *self = if size == 0 { Self::Trailers } else { Self::Data(size) };
                }
                Self::Data(_) if buffer.is_empty() => return Ok(NextChunk::Later),
                Self::Data(left) => {
                    let data = split(buffer, left);
                    if *left == 0 {
                        *self = Self::Break;
                    }
                    return Ok(NextChunk::Data(data));
                }
                Self::Break => match **buffer {
                    [b'\r', b'\n', ..] => {
                        buffer.advance(2);
                        *self = Self::Size;
                    }
                    [] | [b'\r'] => return Ok(NextChunk::Later),
                    _ => return Err(BadChunks),
                },
                Self::Trailers => {
                    let Some(trailers) = trailers(buffer)? else { return Ok(NextChunk::Later) };
                    *self = Self::End;
                    if !trailers.is_empty() {
                        return Ok(NextChunk::Trailers(trailers));
                    }
                }
                Self::End => return Ok(NextChunk::End),
            }
        }
    }
}

/// Takes off what there is of `left` bytes.
pub(super) fn split(buffer: &mut BytesMut, left: &mut u64) -> Bytes {
    let here = usize::try_from(*left).map_or(buffer.len(), |left| left.min(buffer.len()));
    *left -= u64::try_from(here).unwrap_or(u64::MAX);
    buffer.split_to(here).freeze()
}

/// Takes off the line that says how long a chunk is; `None` until all of it is there.
fn size(buffer: &mut BytesMut) -> Result<Option<u64>, BadChunks> {
    // To httparse a line without a digit says zero, which would be the end of the body.
    if buffer.first().is_some_and(|digit| !digit.is_ascii_hexdigit()) {
        return Err(BadChunks);
    }
    let parsed = parse_chunk_size(buffer).map_err(|_| BadChunks)?;
    let (line, size) = match parsed {
        Status::Complete((length, size)) => (length, Some(size)),
        Status::Partial => (buffer.len(), None),
    };
    if line > SIZE_LINE_BYTES_MAX || has_bare_feed(&buffer[..line]) {
        return Err(BadChunks);
    }
    if size.is_some() {
        buffer.advance(line);
    }
    Ok(size)
}

/// Whether a line ends without a carriage return. Some readers end a line there and others do not,
/// so they would not agree where a body ends.
fn has_bare_feed(bytes: &[u8]) -> bool {
    let feeds = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    feeds.map(|(at, _)| at.checked_sub(1).map(|before| bytes[before])).any(|b| b != Some(b'\r'))
}

fn trailers(buffer: &mut BytesMut) -> Result<Option<HeaderMap>, BadChunks> {
    let mut lines = [EMPTY_HEADER; TRAILERS_MAX];
    let (length, lines) = match parse_headers(buffer, &mut lines).map_err(|_| BadChunks)? {
        Status::Complete((length, _)) if length > TRAILER_BYTES_MAX => return Err(BadChunks),
        Status::Complete(parsed) => parsed,
        Status::Partial if buffer.len() > TRAILER_BYTES_MAX => return Err(BadChunks),
        Status::Partial => return Ok(None),
    };
    if has_bare_feed(&buffer[..length]) {
        return Err(BadChunks);
    }
    let mut trailers = HeaderMap::new();
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes()).map_err(|_| BadChunks)?;
        trailers.append(name, HeaderValue::from_bytes(line.value).map_err(|_| BadChunks)?);
    }
    buffer.advance(length);
    Ok(Some(trailers))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read of these bytes when they come one by one; `None` if they are refused.
    fn read(bytes: &[u8]) -> Option<(Vec<u8>, HeaderMap, bool)> {
        let (mut chunks, mut buffer) = (Chunks::default(), BytesMut::new());
        let (mut body, mut after) = (Vec::new(), HeaderMap::new());
        for byte in bytes {
            buffer.extend_from_slice(&[*byte]);
            loop {
                match chunks.next(&mut buffer).ok()? {
                    NextChunk::Data(data) => body.extend_from_slice(&data),
                    NextChunk::Trailers(trailers) => after = trailers,
                    NextChunk::End | NextChunk::Later => break,
                }
            }
        }
        Some((body, after, matches!(chunks, Chunks::End)))
    }

    #[test]
    fn chunks_are_joined_however_they_come() {
        let (body, trailers, ended) =
            read(b"3\r\nabc\r\nA;x=1\r\n0123456789\r\n0\r\n\r\n").unwrap();
        assert_eq!((body.as_slice(), trailers.len(), ended), (&b"abc0123456789"[..], 0, true));
        let (body, trailers, ended) = read(b"1\r\na\r\n0\r\nx-sum: 7\r\n\r\n").unwrap();
        assert_eq!((body.as_slice(), ended), (&b"a"[..], true));
        assert_eq!(trailers["x-sum"], "7");
    }

    #[test]
    fn a_body_that_breaks_off_is_not_at_its_end() {
        for bytes in [&b""[..], b"3\r\nab", b"3\r\nabc", b"3\r\nabc\r\n", b"0\r\n"] {
            assert!(!read(bytes).unwrap().2, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn what_is_no_chunk_is_refused() {
        for bytes in [
            &b"x\r\n"[..],
            b"-1\r\n",
            b"\r\n\r\n",
            b" 0\r\n\r\n",
            b";x\r\n\r\n",
            b"1;x\n\r\na\r\n",
            b"3\r\nabcd\r\n",
            b"0\r\nx-sum: 7\n\r\n",
            b"0\r\n\n",
            b"fffffffffffffffff\r\n",
        ] {
            assert!(read(bytes).is_none(), "{}", bytes.escape_ascii());
        }
    }
}
