//! A multipart body without its boundary, so that a form sent again under another boundary is the
//! same form (RFC 2046, RFC 7578).

use crate::server::comparison::media_type::{MediaKind, MediaType};

/// Why a body is not one sequence of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotMultipart {
    #[error("its content type is not one of `multipart` with one boundary")]
    ContentType,
    #[error("the boundary is missing, or followed by something else, at byte {at}")]
    Boundary { at: usize },
    #[error("the headers of the part at byte {at} are malformed")]
    Headers { at: usize },
}

/// Longest boundary, by RFC 2046.
const BOUNDARY_BYTES_MAX: usize = 70;

/// What comes before the first boundary, the headers and the bytes of each part, in order, and what
/// comes after the last.
///
/// The standard lets readers ignore what is around the parts. It is compared all the same: the
/// service sees it, and nobody who sends a form again changes it.
pub(crate) fn canonical(media_type: &MediaType<'_>, body: &[u8]) -> Result<Vec<u8>, NotMultipart> {
    let boundary = media_type.parameter("boundary").filter(|boundary| {
        let fits = (1..=BOUNDARY_BYTES_MAX).contains(&boundary.len());
        media_type.kind() == MediaKind::Multipart && fits
    });
    let boundary = boundary.ok_or(NotMultipart::ContentType)?;
    let delimiter = [b"--", boundary.as_bytes()].concat();
    let mut reader = MultipartReader { body, at: 0, delimiter: &delimiter };
    let mut out = Vec::with_capacity(body.len());
    reader.preamble(&mut out)?;
    while reader.has_part()? {
        reader.part(&mut out)?;
    }
    reader.epilogue(&mut out);
    Ok(out)
}

struct MultipartReader<'a> {
    body: &'a [u8],
    at: usize,
    delimiter: &'a [u8],
}

impl MultipartReader<'_> {
    /// What comes before the first boundary, with its line break if there is any.
    fn preamble(&mut self, out: &mut Vec<u8>) -> Result<(), NotMultipart> {
        self.at = if self.body.starts_with(self.delimiter) { 0 } else { self.delimited(0)? + 2 };
        put(out, &self.body[..self.at]);
        Ok(())
    }

    /// What comes after the last boundary. No part has so many headers as stand before it.
    fn epilogue(&self, out: &mut Vec<u8>) {
        let end = self.at + self.delimiter.len() + 2;
        out.extend_from_slice(&length(usize::MAX));
        out.extend_from_slice(self.body.get(end..).unwrap_or_default());
    }

    /// Whether the boundary here begins a part, rather than being the last.
    fn has_part(&mut self) -> Result<bool, NotMultipart> {
        let at = self.at + self.delimiter.len();
        let rest = self.body.get(at..).unwrap_or_default();
        if rest.starts_with(b"--") {
            return Ok(false);
        }
        let padding = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        if !rest[padding..].starts_with(b"\r\n") {
            return Err(NotMultipart::Boundary { at });
        }
        self.at = at + padding + 2;
        Ok(true)
    }

    fn part(&mut self, out: &mut Vec<u8>) -> Result<(), NotMultipart> {
        let start = self.at;
        let malformed = NotMultipart::Headers { at: start };
        // The line break before a boundary belongs to it; the one just passed may be such a one.
        let end = self.delimited(start - 2)?;
        let part = self.body.get(start..end).ok_or(malformed)?;
        let (head, content) = match part.strip_prefix(b"\r\n") {
            Some(content) => (&part[..0], content),
            None => {
                let blank = find(part, b"\r\n\r\n").ok_or(malformed)?;
                (&part[..blank], &part[blank + 4..])
            }
        };
        let headers = part_headers(head).ok_or(malformed)?;
        out.extend_from_slice(&length(headers.len()));
        for (name, value) in &headers {
            put(out, name);
            put(out, value);
        }
        put(out, content);
        self.at = end + 2;
        Ok(())
    }

    /// Where the next line break with a boundary is.
    fn delimited(&self, from: usize) -> Result<usize, NotMultipart> {
        let mut at = from;
        while let Some(found) = self.body.get(at..).and_then(|rest| find(rest, b"\r\n--")) {
            at += found;
            if self.body[at + 2..].starts_with(self.delimiter) {
                return Ok(at);
            }
            at += 2;
        }
        Err(NotMultipart::Boundary { at: self.body.len() })
    }
}

/// The headers of a part, by name; `None` if they are not.
fn part_headers(head: &[u8]) -> Option<Vec<(Vec<u8>, &[u8])>> {
    let mut headers = Vec::new();
    let mut rest = head;
    while !rest.is_empty() {
        let end = find(rest, b"\r\n").unwrap_or(rest.len());
        let line = &rest[..end];
        rest = rest.get(end + 2..).unwrap_or_default();
        let colon = line.iter().position(|byte| *byte == b':')?;
        let (name, value) = (&line[..colon], &line[colon + 1..]);
        if name.is_empty() || !name.iter().all(u8::is_ascii_graphic) {
            return None;
        }
        headers.push((name.to_ascii_lowercase(), value.trim_ascii()));
    }
    headers.sort_by(|one, other| one.0.cmp(&other.0));
    Some(headers)
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

fn put(out: &mut Vec<u8>, chunk: &[u8]) {
    out.extend_from_slice(&length(chunk.len()));
    out.extend_from_slice(chunk);
}

fn length(len: usize) -> [u8; 8] {
    u64::try_from(len).unwrap_or(u64::MAX).to_be_bytes()
}
