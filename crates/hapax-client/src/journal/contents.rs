//! What of an entry was sent or said, as columns: clear, or sealed for its row alone.
//!
//! | Column | Clear | Sealed |
//! | --- | --- | --- |
//! | `format` | 1 | 2 |
//! | `url` | whole | up to its query |
//! | `headers` | lines | nothing |
//! | `digest`, `seal` | of the request | nothing: what is sealed shows by itself that it is whole |
//! | `body` | the body | ciphertext of query, headers and body |
//! | `reason` | text | nothing |
//! | `answer_head`, `answer_digest` | of the answer | of no bytes |
//! | `answer_body` | the body | ciphertext of head, digest and body, or of the reason |
//!
//! A row that was begun in the clear stays so; how it ends is sealed from the day there is a key.

use bytes::{Buf as _, Bytes};
use hapax_core::{
    Key, OperationId,
    codec::{self, Sealed},
};
use hapax_encryption::{FileKey, NotOpened, NotSealed, is_sealed};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::{
    entry::{EntryStateTag, JournalEntry},
    error::UnreadableEntry,
    name::Name,
    request::{JournalRequest, RequestDigest},
};

/// The newest version of a row this code knows. It reads every version up to it.
pub(super) const FORMAT: i64 = SEALED;
/// A row whose request is clear.
pub(super) const CLEAR: i64 = 1;
/// A row whose request is sealed.
pub(super) const SEALED: i64 = 2;

const DIGEST_BYTES: usize = 16;

/// The columns of a request, which never change.
pub(super) struct RequestColumns {
    pub(super) format: i64,
    pub(super) url: String,
    pub(super) headers: Vec<u8>,
    pub(super) withheld: String,
    pub(super) digest: Vec<u8>,
    pub(super) seal: Vec<u8>,
    pub(super) body: Bytes,
}

impl RequestColumns {
    pub(super) fn of(key: Option<&FileKey>, entry: &JournalEntry) -> Result<Self, NotSealed> {
        let request = &entry.request;
        let (mut url, headers) = (request.url.to_string(), header_lines(request));
        let withheld = withheld(request);
        let Some(key) = key else {
            let checks = RequestChecks::of(&entry.name, &entry.key, request);
            return Ok(Self {
                format: CLEAR,
                url,
                headers,
                withheld,
                digest: checks.digest.0.to_vec(),
                seal: checks.seal.0.to_vec(),
                body: request.body.clone(),
            });
        };
        let query = url.split_off(url.find('?').unwrap_or(url.len()));
        let place = RequestPlace {
            name: &entry.name,
            key: &entry.key,
            method: &request.method,
            url: &url,
            withheld: &withheld,
        };
        let (query_len, headers_len) = (len(query.as_bytes()), len(&headers));
        let parts = [&query_len[..], query.as_bytes(), &headers_len, &headers, &request.body];
        let body = key.seal(&place.parts(), &parts)?;
        let (headers, digest, seal) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { format: SEALED, url, headers, withheld, digest, seal, body })
    }
}

/// What a sealed request is bound to: everything of it that stays clear.
pub(super) struct RequestPlace<'a> {
    pub(super) name: &'a Name,
    pub(super) key: &'a Key,
    pub(super) method: &'a Method,
    pub(super) url: &'a str,
    pub(super) withheld: &'a str,
}

impl RequestPlace<'_> {
    fn parts(&self) -> [&[u8]; 6] {
        let (name, key) = (self.name.as_str().as_bytes(), self.key.as_str().as_bytes());
        let (method, url) = (self.method.as_str().as_bytes(), self.url.as_bytes());
        [b"request", name, key, method, url, self.withheld.as_bytes()]
    }

    /// The query of the URL, the headers and the body that were sealed here.
    pub(super) fn open(
        &self,
        key: Option<&FileKey>,
        sealed: &[u8],
    ) -> Result<[Bytes; 3], UnreadableEntry> {
        let key = key.ok_or(UnreadableEntry::Encrypted)?;
        let mut opened = key.open(&self.parts(), sealed)?;
        Ok([counted(&mut opened)?, counted(&mut opened)?, opened])
    }
}

/// What shows that a request in the clear did not change.
pub(super) struct RequestChecks {
    pub(super) digest: RequestDigest,
    pub(super) seal: RequestDigest,
}

impl RequestChecks {
    pub(super) fn of(name: &Name, key: &Key, request: &JournalRequest) -> Self {
        let (headers, withheld, digest) =
            (header_lines(request), withheld(request), request.digest());
        let (name, key) = (name.as_str().as_bytes(), key.as_str().as_bytes());
        let seal = RequestDigest::of(&[name, key, &headers, withheld.as_bytes(), &digest.0]);
        Self { digest, seal }
    }
}

/// The columns of an end, all of nothing while there is none.
#[derive(Default)]
pub(super) struct EndColumns {
    pub(super) reason: Option<String>,
    pub(super) head: Option<Bytes>,
    pub(super) digest: Option<Vec<u8>>,
    pub(super) body: Option<Bytes>,
}

impl EndColumns {
    pub(super) fn of(key: Option<&FileKey>, entry: &JournalEntry) -> Result<Self, NotSealed> {
        let answer = entry.state.answer().map(|answer| codec::seal(answer_id(entry), answer));
        let reason = entry.state.reason();
        let Some(key) = key else {
            return Ok(Self {
                reason: reason.map(str::to_owned),
                head: answer.as_ref().map(|answer| answer.head.clone()),
                digest: answer.as_ref().map(|answer| answer.digest.to_vec()),
                body: answer.map(|answer| answer.body),
            });
        };
        let place = EndPlace::of(entry, entry.state.tag());
        let body = match (&answer, reason) {
            (Some(Sealed { head, body, digest }), _) => {
                key.seal(&place.parts(), &[&len(head), head, digest, body])?
            }
            (None, Some(reason)) => key.seal(&place.parts(), &[reason.as_bytes()])?,
            (None, None) => return Ok(Self::default()),
        };
        let (head, digest) = (Some(Bytes::new()), Some(Vec::new()));
        Ok(Self { reason: None, head, digest, body: Some(body) })
    }
}

/// What a sealed end is bound to: its operation, and the taking up that ended so.
pub(super) struct EndPlace<'a> {
    name: &'a Name,
    key: &'a Key,
    tag: [u8; 1],
    fence: [u8; 8],
    owner: [u8; 8],
}

impl<'a> EndPlace<'a> {
    pub(super) fn of(entry: &'a JournalEntry, tag: EntryStateTag) -> Self {
        Self {
            name: &entry.name,
            key: &entry.key,
            tag: [tag as u8],
            fence: entry.fence.get().to_be_bytes(),
            owner: entry.owner.0.to_be_bytes(),
        }
    }

    fn parts(&self) -> [&[u8]; 6] {
        let (name, key) = (self.name.as_str().as_bytes(), self.key.as_str().as_bytes());
        [b"end", name, key, &self.tag, &self.fence, &self.owner]
    }

    /// The answer that was sealed here.
    pub(super) fn open_answer(
        &self,
        key: Option<&FileKey>,
        sealed: &[u8],
    ) -> Result<Sealed, UnreadableEntry> {
        let mut opened = self.open(key, sealed)?;
        let head = counted(&mut opened)?;
        let digest = opened.first_chunk().copied().ok_or(NotOpened)?;
        opened.advance(DIGEST_BYTES);
        Ok(Sealed { head, body: opened, digest })
    }

    /// The reason that was sealed here.
    pub(super) fn open_reason(
        &self,
        key: Option<&FileKey>,
        sealed: &[u8],
    ) -> Result<String, UnreadableEntry> {
        let opened = self.open(key, sealed)?;
        String::from_utf8(opened.into()).map_err(|_| NotOpened.into())
    }

    fn open(&self, key: Option<&FileKey>, sealed: &[u8]) -> Result<Bytes, UnreadableEntry> {
        let key = key.ok_or(UnreadableEntry::Encrypted)?;
        Ok(key.open(&self.parts(), sealed)?)
    }
}

/// Whether these columns of an end hold ciphertext.
pub(super) fn is_sealed_end(head: &[u8], body: &[u8]) -> bool {
    head.is_empty() && is_sealed(body)
}

/// What binds a stored answer to its operation.
pub(super) fn answer_id(entry: &JournalEntry) -> OperationId {
    let (name, key) = (entry.name.as_str().as_bytes(), entry.key.as_str().as_bytes());
    let RequestDigest(digest) = RequestDigest::of(&[name, key]);
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    OperationId::from_bytes(id)
}

fn header_lines(request: &JournalRequest) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in &request.headers {
        lines.extend_from_slice(name.as_str().as_bytes());
        lines.extend_from_slice(b": ");
        lines.extend_from_slice(value.as_bytes());
        lines.extend_from_slice(b"\r\n");
    }
    lines
}

/// The headers in these lines; `None` if they are no such lines.
pub(super) fn headers(lines: &[u8]) -> Option<HeaderMap> {
    let mut headers = HeaderMap::new();
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r\n")?;
        let colon = line.windows(2).position(|pair| pair == b": ")?;
        let name = HeaderName::from_bytes(&line[..colon]).ok()?;
        headers.append(name, HeaderValue::from_bytes(&line[colon + 2..]).ok()?);
    }
    Some(headers)
}

fn withheld(request: &JournalRequest) -> String {
    let names: Vec<&str> = request.withheld.iter().map(HeaderName::as_str).collect();
    names.join(" ")
}

/// How long a part is, written before it.
fn len(part: &[u8]) -> [u8; 4] {
    u32::try_from(part.len()).unwrap_or(u32::MAX).to_be_bytes()
}

/// The part behind its length.
fn counted(opened: &mut Bytes) -> Result<Bytes, NotOpened> {
    let len = opened.try_get_u32().map_err(|_| NotOpened)?;
    let len = usize::try_from(len).map_err(|_| NotOpened)?;
    if len > opened.len() { Err(NotOpened) } else { Ok(opened.split_to(len)) }
}
