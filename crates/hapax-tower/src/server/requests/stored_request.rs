//! A request as a pending record keeps it, to be run later: versioned, length-prefixed.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, request::Parts};

use crate::server::{options::Protection, requests::headers};

const FORMAT: u8 = 1;
/// The format of a request whose client was told that it will be done: the same, but for this byte.
const ACCEPTED_FORMAT: u8 = 2;

/// What becomes of a request that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptFor {
    /// Its client waits; it is kept in case that its owner vanishes.
    WaitedFor,
    /// Its client was told that it will be done.
    Accepted,
}

/// Whether the client of a kept request was told that it will be done.
pub fn is_accepted(bytes: &Bytes) -> bool {
    bytes.first() == Some(&ACCEPTED_FORMAT)
}

/// The bytes that keep this request, without what belongs to one connection, and without
/// credentials unless its route keeps them too. What `origin` says replaces what the client said.
pub fn write(
    parts: &Parts,
    body: &Bytes,
    kept_as: KeptFor,
    protection: &Protection,
    origin: &HeaderMap,
) -> Bytes {
    let mut out = BytesMut::with_capacity(512 + body.len());
    out.put_u8(match kept_as {
        KeptFor::WaitedFor => FORMAT,
        KeptFor::Accepted => ACCEPTED_FORMAT,
    });
    put(&mut out, parts.method.as_str().as_bytes());
    put(&mut out, parts.uri.to_string().as_bytes());
    let kept = headers::kept_for_later(&parts.headers, protection);
    let kept = kept.filter(|(name, _)| !origin.contains_key(*name));
    let origin = origin.iter().map(|(name, value)| (name, value.as_bytes()));
    let kept: Vec<_> = kept.chain(origin).collect();
    out.put_u32(u32::try_from(kept.len()).unwrap_or(u32::MAX));
    for (name, value) in kept {
        put(&mut out, name.as_str().as_bytes());
        put(&mut out, value);
    }
    put(&mut out, body);
    out.freeze()
}

/// The request kept in these bytes; `None` if no version of this code wrote them.
pub fn read(mut bytes: Bytes) -> Option<Request<Bytes>> {
    if !matches!(bytes.try_get_u8().ok()?, FORMAT | ACCEPTED_FORMAT) {
        return None;
    }
    let method = Method::from_bytes(&take(&mut bytes)?).ok()?;
    let uri = Uri::try_from(&*take(&mut bytes)?).ok()?;
    let mut request = Request::new(Bytes::new());
    (*request.method_mut(), *request.uri_mut()) = (method, uri);
    for _ in 0..bytes.try_get_u32().ok()? {
        let name = HeaderName::from_bytes(&take(&mut bytes)?).ok()?;
        let value = HeaderValue::from_bytes(&take(&mut bytes)?).ok()?;
        request.headers_mut().try_append(name, value).ok()?;
    }
    *request.body_mut() = take(&mut bytes)?;
    bytes.is_empty().then_some(request)
}

fn put(out: &mut BytesMut, chunk: &[u8]) {
    out.put_u32(u32::try_from(chunk.len()).unwrap_or(u32::MAX));
    out.put_slice(chunk);
}

fn take(bytes: &mut Bytes) -> Option<Bytes> {
    let len = usize::try_from(bytes.try_get_u32().ok()?).ok()?;
    (len <= bytes.len()).then(|| bytes.split_to(len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{dialect::Dialect, options::KeptCredentials};

    #[test]
    fn a_request_comes_back_without_credentials_and_connection_headers() {
        let request = Request::post("/payments?a=1")
            .header("content-type", "text/plain")
            .header("x-two", "1")
            .header("x-two", "2")
            .header("authorization", "secret")
            .header("connection", "x-gone")
            .header("x-gone", "1")
            .body(())
            .unwrap();
        let (parts, ()) = request.into_parts();
        let (pay, nothing) = (Bytes::from_static(b"pay"), HeaderMap::new());
        let stored = write(&parts, &pay, KeptFor::WaitedFor, &Protection::default(), &nothing);
        assert!(!is_accepted(&stored));
        let back = read(stored.clone()).unwrap();
        assert_eq!((back.method().as_str(), back.uri().path()), ("POST", "/payments"));
        assert_eq!(back.uri().query(), Some("a=1"));
        assert_eq!(back.headers().get_all("x-two").iter().count(), 2);
        assert_eq!(back.headers().len(), 3);
        let origin = HeaderMap::from_iter([(
            HeaderName::from_static("x-two"),
            HeaderValue::from_static("ours"),
        )]);
        let keeping = Protection { credentials: KeptCredentials::Keep, ..Protection::default() };
        let whole = write(&parts, &Bytes::new(), KeptFor::Accepted, &keeping, &origin);
        assert!(is_accepted(&whole));
        let whole = read(whole).unwrap();
        assert_eq!(
            (whole.headers().len(), &whole.headers()["authorization"], &whole.headers()["x-two"]),
            (3, &HeaderValue::from_static("secret"), &HeaderValue::from_static("ours"))
        );
        assert_eq!(back.into_body(), "pay");
        for cut in 0..stored.len() {
            assert!(read(stored.slice(..cut)).is_none());
        }
    }

    #[test]
    fn headers_that_carry_secrets_are_not_kept_by_whatever_name() {
        let request = Request::post("/payments")
            .header("cookie", "a=1")
            .header("x-api-key", "secret")
            .header("x-amz-security-token", "secret")
            .header("x-badge", "secret")
            .header("x-who", "secret")
            .header("x-request-token", "k-1")
            .header("x-account", "7")
            .body(())
            .unwrap();
        let (parts, ()) = request.into_parts();
        let own = crate::Tenancy::from_fn(|_| None).reading([HeaderName::from_static("x-who")]);
        let protection = Protection {
            secret_headers: vec![HeaderName::from_static("x-badge")],
            tenancy: Some(own),
            dialect: Dialect::Header(HeaderName::from_static("x-request-token")),
            ..Protection::default()
        };
        let back =
            read(write(&parts, &Bytes::new(), KeptFor::WaitedFor, &protection, &HeaderMap::new()))
                .unwrap();
        let mut names: Vec<_> = back.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            ["x-account", "x-request-token"],
            "the key is kept whatever it is called"
        );
    }

    #[test]
    fn more_headers_than_a_request_can_hold_are_refused() {
        let count = 1 << 16;
        let mut stored = BytesMut::from(&[FORMAT][..]);
        put(&mut stored, b"POST");
        put(&mut stored, b"/payments");
        stored.put_u32(count);
        for at in 0..count {
            put(&mut stored, format!("x-{at}").as_bytes());
            put(&mut stored, b"1");
        }
        put(&mut stored, b"");
        assert!(read(stored.freeze()).is_none());
    }
}
