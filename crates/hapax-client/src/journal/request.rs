//! What is sent, kept whole.

use bytes::Bytes;
use hapax_core::limits::{OUTCOME_HEADER_BYTES_MAX, OUTCOME_HEADERS_MAX, REQUEST_BYTES_MAX};
use hapax_tower::is_secret_header;
use http::{
    HeaderMap, Method, Uri,
    header::{CONTENT_TYPE, HeaderName},
};
use sha2::{Digest as _, Sha256};

/// Longest URL that is kept, in bytes: what servers accept at most.
pub const URL_BYTES_MAX: usize = 8 << 10;

/// Whether a header says who asks, as far as its name tells: `Authorization`, `Cookie`, `X-Api-Key`
/// and their like. Such headers are kept only where the caller says so.
pub fn is_credential(name: &HeaderName) -> bool {
    is_secret_header(name)
}

/// A request as it is kept: everything needed to send it again, except what was withheld.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JournalRequest {
    pub(super) method: Method,
    pub(super) url: Uri,
    pub(super) headers: HeaderMap,
    pub(super) withheld: Vec<HeaderName>,
    pub(super) body: Bytes,
}

/// Whether the headers that say who asks are written to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JournalCredentials {
    /// They are left out; whoever sends the request again has to supply them.
    #[default]
    Withhold,
    /// They are kept with the rest, in plain text unless the journal is encrypted.
    Keep,
}

impl JournalRequest {
    /// A request within the limits, with an absolute `http` or `https` URL.
    pub fn new(
        method: Method,
        url: Uri,
        mut headers: HeaderMap,
        body: Bytes,
        credentials: JournalCredentials,
    ) -> Result<Self, InvalidJournalRequest> {
        check_url(&url)?;
        let mut withheld: Vec<HeaderName> = Vec::new();
        if credentials == JournalCredentials::Withhold {
            withheld.extend(headers.keys().filter(|name| is_credential(name)).cloned());
            for name in &withheld {
                headers.remove(name);
            }
        }
        let len: usize =
            headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if headers.len() > OUTCOME_HEADERS_MAX || len > OUTCOME_HEADER_BYTES_MAX {
            return Err(InvalidJournalRequest::Headers { count: headers.len(), len });
        }
        if body.len() > REQUEST_BYTES_MAX {
            return Err(InvalidJournalRequest::Body { len: body.len(), max: REQUEST_BYTES_MAX });
        }
        Ok(Self { method, url, headers, withheld, body })
    }

    /// The method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The absolute URL.
    pub fn url(&self) -> &Uri {
        &self.url
    }

    /// The headers that are kept.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The headers it was given that are not kept: without them it must not be sent again.
    pub fn withheld(&self) -> &[HeaderName] {
        &self.withheld
    }

    /// The body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// What makes two requests the same: method, URL, content type and body.
    pub fn digest(&self) -> RequestDigest {
        let kind = self.headers.get(CONTENT_TYPE).map_or(&b""[..], |value| value.as_bytes());
        let url = self.url.to_string();
        RequestDigest::of(&[self.method.as_str().as_bytes(), url.as_bytes(), kind, &self.body])
    }
}

/// SHA-256 over parts of which none can pass for a piece of its neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RequestDigest(pub(super) [u8; 32]);

impl RequestDigest {
    pub(super) fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }
}

fn check_url(url: &Uri) -> Result<(), InvalidJournalRequest> {
    let len = url.to_string().len();
    if len > URL_BYTES_MAX {
        return Err(InvalidJournalRequest::UrlTooLong { len });
    }
    let http = matches!(url.scheme_str(), Some("http" | "https"));
    let Some(authority) = url.authority().filter(|_| http) else {
        return Err(InvalidJournalRequest::NotAbsolute);
    };
    if authority.as_str().contains('@') {
        return Err(InvalidJournalRequest::Password);
    }
    Ok(())
}

/// Why a request cannot be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidJournalRequest {
    /// The URL does not say where to.
    #[error("the URL must be absolute, and begin with http:// or https://")]
    NotAbsolute,
    /// The URL says who asks.
    #[error("the URL holds a user or a password: send them in an Authorization header instead")]
    Password,
    /// The URL is longer than the limit.
    #[error("the URL is {len} bytes long; the limit is {URL_BYTES_MAX}")]
    UrlTooLong {
        /// Its length, in bytes.
        len: usize,
    },
    /// There are more headers than the limit, or they are larger.
    #[error(
        "its {count} headers hold {len} bytes; the limits are {OUTCOME_HEADERS_MAX} headers and \
         {OUTCOME_HEADER_BYTES_MAX} bytes"
    )]
    Headers {
        /// How many there are.
        count: usize,
        /// Their size, in bytes.
        len: usize,
    },
    /// The body is larger than the limit.
    #[error("the body is {len} bytes; the limit is {max}")]
    Body {
        /// Its size, in bytes.
        len: usize,
        /// The limit, in bytes.
        max: usize,
    },
}
