//! Names of headers that both sides of the wire, and proxies between them, read alike.

use http::{HeaderName, header};

/// The header that carries the key.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What comes with the wish to go on in HTTP/2.
pub(crate) const HTTP2_SETTINGS: HeaderName = HeaderName::from_static("http2-settings");

/// Headers that belong to one connection, by RFC 9110.
pub static HOP_BY_HOP: [HeaderName; 10] = [
    header::CONNECTION,
    HTTP2_SETTINGS,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];
