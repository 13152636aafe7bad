//! Which headers are stored, forwarded and added.

use bytes::Bytes;
use hapax_core::{Fence, Header, Timestamp};
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{self, CONNECTION, CONTENT_LENGTH, DATE, SET_COOKIE, UPGRADE},
};

pub(crate) use crate::refusal_header::{DIALECT, REFUSAL};
use crate::{
    header_names::{HOP_BY_HOP, HTTP2_SETTINGS},
    server::options::Protection,
};

pub(crate) const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
pub(crate) const EXPIRES: HeaderName = HeaderName::from_static("idempotency-expires");
pub(crate) const FENCE: HeaderName = HeaderName::from_static("hapax-fence");
pub(crate) const UNPROTECTED: HeaderName = HeaderName::from_static("hapax-unprotected");

/// Headers that belong to one answer or one person, and would lie in another.
static OF_ONE_ANSWER: [HeaderName; 9] = [
    SET_COOKIE,
    DATE,
    header::AUTHORIZATION,
    HeaderName::from_static("alt-svc"),
    HeaderName::from_static("authentication-info"),
    HeaderName::from_static("proxy-authentication-info"),
    HeaderName::from_static("server-timing"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];

/// The headers of a response that are stored with it.
pub(crate) fn stored(headers: &HeaderMap, protection: &Protection) -> Vec<Header> {
    let named = named_by_connection(headers);
    let is_kept = |name: &HeaderName| {
        let never = HOP_BY_HOP.contains(name) || named.contains(name) || is_ours(name);
        let usually = !OF_ONE_ANSWER.contains(name)
            && !protection.unstored_headers.contains(name)
            && !protection.is_named_secret(name);
        // The server writes the length anew; a stored one could only disagree with the body.
        !never && *name != CONTENT_LENGTH && (usually || protection.stored_headers.contains(name))
    };
    let kept = headers.iter().filter(|(name, _)| is_kept(name));
    let kept = kept.map(|(name, value)| Header {
        name: name.as_str().to_owned(),
        value: Bytes::copy_from_slice(value.as_bytes()),
    });
    kept.collect()
}

/// The headers of a request that are kept to run it later: not those of the connection, and
/// credentials only where a route says so.
pub(crate) fn kept_for_later<'a>(
    headers: &'a HeaderMap,
    protection: &'a Protection,
) -> impl Iterator<Item = (&'a HeaderName, &'a [u8])> {
    let named = named_by_connection(headers);
    let kept = headers.iter().filter(move |(name, _)| {
        let of_connection = HOP_BY_HOP.contains(name) || named.contains(name);
        !of_connection && !protection.leaves_out(name)
    });
    kept.map(|(name, value)| (name, value.as_bytes()))
}

/// Whether a request that is run later has all that it came with: whoever checks its credentials
/// would refuse it without them.
pub(crate) fn keeps_what_it_needs(headers: &HeaderMap, protection: &Protection) -> bool {
    let lost = |name: &HeaderName| !HOP_BY_HOP.contains(name) && protection.leaves_out(name);
    !headers.keys().any(lost)
}

/// Ignores the wish to speak another protocol from here on, as RFC 9110 7.8 allows: what would
/// follow on such a connection could not be stored. Some clients send it with every request.
pub(crate) fn ignore_upgrade(headers: &mut HeaderMap) {
    if headers.remove(UPGRADE).is_some() {
        headers.remove(HTTP2_SETTINGS);
    }
}

/// Removes what belongs to one connection, and what only this layer may say.
pub(crate) fn strip_hops_and_ours(headers: &mut HeaderMap) {
    let named = named_by_connection(headers);
    for name in HOP_BY_HOP.iter().chain(&named) {
        headers.remove(name);
    }
    strip_ours(headers);
}

/// Removes what only this layer may say, so that nobody can pretend to be it. What another Hapax
/// further in refused with stays: it is as true one hop further out.
pub(crate) fn strip_ours(headers: &mut HeaderMap) {
    let is_stripped = |name: &&HeaderName| is_ours(name) && **name != REFUSAL && **name != DIALECT;
    let ours: Vec<_> = headers.keys().filter(is_stripped).cloned().collect();
    for name in ours {
        headers.remove(name);
    }
}

/// Tells the protected service which attempt it is.
pub(crate) fn add_fence(headers: &mut HeaderMap, fence: Fence) {
    // What nearly every operation has is not written anew.
    let number = match fence {
        Fence::FIRST => const { HeaderValue::from_static("1") },
        _ => HeaderValue::from(fence.get()),
    };
    headers.insert(FENCE, number);
}

/// Tells the client until when the answer is kept.
pub(crate) fn add_expiry(headers: &mut HeaderMap, expires_at: Timestamp) {
    let since_epoch = expires_at.after(Timestamp::ZERO);
    let date = httpdate::fmt_http_date(std::time::UNIX_EPOCH + since_epoch);
    if let Ok(date) = HeaderValue::try_from(date) {
        headers.insert(EXPIRES, date);
    }
}

pub(crate) fn is_ours(name: &HeaderName) -> bool {
    *name == REPLAYED || *name == EXPIRES || name.as_str().starts_with("hapax-")
}

/// The headers that are said to belong to this connection alone, and may be.
pub(crate) fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    if !headers.contains_key(CONNECTION) {
        return Vec::new();
    }
    let lines = headers.get_all(CONNECTION).iter().filter_map(|line| line.to_str().ok());
    let names = lines.flat_map(|line| line.split(',')).map(str::trim);
    let names = names.filter(|name| !is_for_everybody(name));
    names.filter_map(|name| HeaderName::try_from(name).ok()).collect()
}

/// Whether a header is said to belong to this connection alone, and may be: it is not passed on.
pub fn is_named_by_connection(headers: &HeaderMap, name: &HeaderName) -> bool {
    headers.contains_key(CONNECTION) && named_by_connection(headers).contains(name)
}

/// Whether a header never belongs to one connection, whatever `Connection` says: it frames the
/// message, says whom it is for and whom from, or is ours. A client that names one has no right to
/// keep it from the service.
pub fn is_for_everybody(name: &str) -> bool {
    let starts = |start: &str| {
        name.get(..start.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(start))
    };
    let is = |kept: &&str| name.eq_ignore_ascii_case(kept);
    starts("hapax-") || starts("x-forwarded-") || FOR_EVERYBODY.iter().any(is)
}

const FOR_EVERYBODY: [&str; 10] = [
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "authorization",
    "cookie",
    "forwarded",
    "x-real-ip",
    "via",
    "date",
];
