//! A multipart body without its boundary, so that a form sent again under another boundary is the
//! same form (RFC 2046, RFC 7578).

use http::{HeaderMap, header::CONTENT_TYPE};

/// A multipart body in one spelling.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Multipart {
    /// The content type without the boundary.
    pub(crate) content_type: Vec<u8>,
    /// The headers and the bytes of each part, in order.
    pub(crate) body: Vec<u8>,
}

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

pub(crate) fn canonical(headers: &HeaderMap, body: &[u8]) -> Result<Multipart, NotMultipart> {
    let mut lines = headers.get_all(CONTENT_TYPE).iter();
    let (Some(line), None) = (lines.next(), lines.next()) else {
        return Err(NotMultipart::ContentType);
    };
    let line = line.to_str().map_err(|_| NotMultipart::ContentType)?;
    let (content_type, boundary) = without_boundary(line).ok_or(NotMultipart::ContentType)?;
    let delimiter = [b"--", boundary.as_bytes()].concat();
    let mut reader = Reader { body, at: 0, delimiter: &delimiter };
    let mut out = Vec::with_capacity(body.len());
    reader.preamble()?;
    while reader.has_part()? {
        reader.part(&mut out)?;
    }
    Ok(Multipart { content_type, body: out })
}

struct Reader<'a> {
    body: &'a [u8],
    at: usize,
    delimiter: &'a [u8],
}

impl Reader<'_> {
    /// Passes what comes before the first boundary; by the standard it means nothing.
    fn preamble(&mut self) -> Result<(), NotMultipart> {
        self.at = if self.body.starts_with(self.delimiter) { 0 } else { self.delimited(0)? + 2 };
        Ok(())
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

/// A content type without its boundary, and the boundary.
fn without_boundary(content_type: &str) -> Option<(Vec<u8>, String)> {
    let mut parameters = parameters(content_type);
    let essence = parameters.next()?.trim().to_ascii_lowercase();
    essence.strip_prefix("multipart/")?;
    let (mut rest, mut boundary) = (essence, None);
    for parameter in parameters {
        let (name, value) = parameter.split_once('=')?;
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim());
        if name == "boundary" {
            let value = value.strip_prefix('"').map_or(Some(value), |v| v.strip_suffix('"'))?;
            let fits = (1..=BOUNDARY_BYTES_MAX).contains(&value.len());
            if boundary.is_some() || !fits || value.contains(['"', '\\']) {
                return None;
            }
            boundary = Some(value.to_owned());
        } else {
            rest.push_str(&format!(";{name}={value}"));
        }
    }
    Some((rest.into_bytes(), boundary?))
}

/// What is between the semicolons that are not quoted.
fn parameters(content_type: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    let parts = content_type.split(move |character| {
        quoted ^= character == '"';
        character == ';' && !quoted
    });
    parts.filter(|part| !part.trim().is_empty())
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
