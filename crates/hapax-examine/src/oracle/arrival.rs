//! A request that arrived at one of our own listeners.

use bytes::{Bytes, BytesMut};

use crate::wire::unchunk;

const HEADERS_MAX: usize = 128;
const HEAD_BYTES_MAX: usize = 64 * 1024;
const BODY_BYTES_MAX: usize = 16 * 1024 * 1024;

/// A request, whole.
#[derive(Debug, Clone)]
pub(super) struct WholeArrival {
    pub(super) method: String,
    /// Names in lower case.
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: Bytes,
    /// All of it as it came.
    pub(super) bytes: Bytes,
    /// Whether another may come on its connection.
    pub(super) is_kept_alive: bool,
}

/// How much of a request there is.
#[derive(Debug)]
pub(super) enum ArrivalState {
    /// All of it.
    Whole(WholeArrival),
    /// Not all; whether its client waits until it is told to go on.
    Partial { waits: bool },
    /// It cannot be read.
    Unreadable,
}

impl WholeArrival {
    /// Takes the first request out of what has come on a connection.
    pub(super) fn take(buffer: &mut BytesMut) -> ArrivalState {
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut request = httparse::Request::new(&mut headers);
        let head = match request.parse(buffer) {
            Ok(httparse::Status::Complete(head)) => head,
            Ok(httparse::Status::Partial) if buffer.len() <= HEAD_BYTES_MAX => {
                return ArrivalState::Partial { waits: false };
            }
            Ok(httparse::Status::Partial) | Err(_) => return ArrivalState::Unreadable,
        };
        let method = request.method.unwrap_or_default().to_owned();
        let is_old = request.version == Some(0);
        let headers: Vec<_> = request.headers.iter().map(header).collect();
        let rest = buffer.get(head..).unwrap_or_default();
        let Ok(body) = body(&headers, rest) else { return ArrivalState::Unreadable };
        let says = |name: &str, word: &str| {
            let found = header_of(&headers, name);
            found.is_some_and(|value| value.to_ascii_lowercase().contains(word))
        };
        let Some((body, length)) = body else {
            let waits = rest.is_empty() && says("expect", "100-continue");
            return if buffer.len() > HEAD_BYTES_MAX + BODY_BYTES_MAX {
                ArrivalState::Unreadable
            } else {
                ArrivalState::Partial { waits }
            };
        };
        let is_kept_alive = !is_old && !says("connection", "close");
        let bytes = buffer.split_to(head + length).freeze();
        ArrivalState::Whole(Self { method, headers, body, bytes, is_kept_alive })
    }

    /// The first header of this name, which is in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        header_of(&self.headers, name)
    }
}

/// Whether a marker is in these bytes, and not only the beginning of a longer one.
pub(super) fn has_marker(bytes: &[u8], marker: &str) -> bool {
    let length = marker.len();
    if length == 0 {
        return false;
    }
    let mut windows = bytes.windows(length).enumerate();
    windows.any(|(at, found)| {
        found == marker.as_bytes() && !bytes.get(at + length).is_some_and(u8::is_ascii_digit)
    })
}

fn header(header: &httparse::Header<'_>) -> (String, String) {
    let value = String::from_utf8_lossy(header.value).into_owned();
    (header.name.to_ascii_lowercase(), value)
}

fn header_of<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    headers.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
}

/// The body that `rest` begins with and how long it is there, if it is whole; an error if it cannot be read.
fn body(headers: &[(String, String)], rest: &[u8]) -> Result<Option<(Bytes, usize)>, String> {
    if header_of(headers, "transfer-encoding").is_some() {
        let whole = unchunk(rest)?;
        return Ok(whole.map(|(body, length)| (Bytes::from(body), length)));
    }
    let Some(text) = header_of(headers, "content-length") else {
        return Ok(Some((Bytes::new(), 0)));
    };
    let length: usize = text.trim().parse().map_err(|_| format!("`{text}` is no length"))?;
    if length > BODY_BYTES_MAX {
        return Err(format!("{length} bytes are too many"));
    }
    Ok(rest.get(..length).map(|body| (Bytes::copy_from_slice(body), length)))
}
