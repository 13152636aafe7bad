//! What of a request's and an answer's head belongs to one connection, and what is passed on.

use hapax_tower::{HOP_BY_HOP, is_for_everybody};
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Uri, Version,
    header::{self, CONNECTION, COOKIE, HOST},
    request::Parts,
};

use crate::server::Peer;

static FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
static FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Makes a client's request one of our own. `host` replaces the one the client named.
pub(crate) fn prepare<B>(request: &mut Request<B>, host: Option<&HeaderValue>) {
    let authority = authority(request.headers(), request.uri());
    let peer = request.extensions().get::<Peer>().cloned();
    let version = request.version();
    let headers = request.headers_mut();
    strip_hops(headers);
    remove_shadows(headers);
    // The gateway has answered it by reading the body.
    headers.remove(header::EXPECT);
    if version == Version::HTTP_2 {
        join_cookies(headers);
    }
    if let Some(peer) = peer {
        headers.extend(of_the_client(headers, &peer, authority.as_ref()));
    }
    if let Some(host) = host.or(authority.as_ref()) {
        headers.insert(HOST, host.clone());
    }
}

/// Removes what is said to this connection alone.
pub(crate) fn strip_hops(headers: &mut HeaderMap) {
    if let Some(first) = headers.remove(CONNECTION) {
        let _ = first.to_str().map(|names| remove_named(headers, names));
        while let Some(more) = headers.remove(CONNECTION) {
            let _ = more.to_str().map(|names| remove_named(headers, names));
        }
    }
    // Most heads have none, which one look at each name shows.
    if headers.keys().any(|name| HOP_BY_HOP.contains(name)) {
        for name in &HOP_BY_HOP {
            headers.remove(name);
        }
    }
}

fn remove_named(headers: &mut HeaderMap, names: &str) {
    for name in names.split(',').map(str::trim).filter(|name| !is_for_everybody(name)) {
        headers.remove(name);
    }
}

/// Removes headers that a server which sees names as CGI does, where `-` and `_` are the same, would
/// take for one that counts: one of ours, one that belongs to a connection, or another of the request.
fn remove_shadows(headers: &mut HeaderMap) {
    if !headers.keys().any(|name| name.as_str().as_bytes().contains(&b'_')) {
        return;
    }
    let casts = |name: &&HeaderName| {
        let read = name.as_str().replace('_', "-");
        read != name.as_str()
            && (is_for_everybody(&read)
                || SHADOWED.contains(&&*read)
                || HOP_BY_HOP.iter().any(|hop| *hop == *read)
                || headers.contains_key(&read))
    };
    let shadows: Vec<_> = headers.keys().filter(casts).cloned().collect();
    for name in shadows {
        headers.remove(name);
    }
}

/// Names that count beside those that are for everybody and those that belong to one connection.
pub(super) const SHADOWED: [&str; 5] = [
    "idempotency-key",
    "idempotency-expires",
    "idempotent-replayed",
    "repeatability-request-id",
    "repeatability-first-sent",
];

/// Who a request came from, which scheme it used and which host it named: what the upstream is told,
/// also when the request is run later. A request of which nobody knows says nothing.
pub(crate) fn origin(parts: &Parts) -> HeaderMap {
    let authority = authority(&parts.headers, &parts.uri);
    let peer = parts.extensions.get::<Peer>();
    peer.map(|peer| of_the_client(&parts.headers, peer, authority.as_ref())).unwrap_or_default()
}

fn authority(headers: &HeaderMap, uri: &Uri) -> Option<HeaderValue> {
    match (headers.get(HOST), uri.authority()) {
        (Some(host), _) => Some(host.clone()),
        (None, Some(authority)) => HeaderValue::try_from(authority.as_str()).ok(),
        (None, None) => None,
    }
}

fn of_the_client(headers: &HeaderMap, peer: &Peer, authority: Option<&HeaderValue>) -> HeaderMap {
    let mut told = HeaderMap::with_capacity(3);
    let address = match headers.get(&FORWARDED_FOR).and_then(|before| before.to_str().ok()) {
        Some(before) => HeaderValue::try_from(format!("{before}, {}", peer.address().ip())).ok(),
        None => Some(peer.forwarded_for().clone()),
    };
    if let Some(address) = address {
        told.insert(FORWARDED_FOR.clone(), address);
    }
    let scheme = if peer.is_secure() { "https" } else { "http" };
    told.insert(FORWARDED_PROTO.clone(), HeaderValue::from_static(scheme));
    if let Some(authority) = authority {
        told.insert(FORWARDED_HOST.clone(), authority.clone());
    }
    told
}

/// HTTP/2 may send a cookie in pieces; HTTP/1.1 knows one header only.
fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(COOKIE).iter().nth(1).is_none() {
        return;
    }
    let pieces: Vec<_> = headers.get_all(COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(joined) = HeaderValue::from_bytes(&pieces.join(&b"; "[..])) {
        headers.insert(COOKIE, joined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_to_one_connection_is_not_passed_on() {
        let mut request = Request::post("/pay")
            .header("host", "shop.example")
            .header("connection", "x-hop, host, Hapax-Fence, hapax-retry, close")
            .header("hapax-fence", "1")
            .header("hapax-retry", "never")
            .header("x-hop", "1")
            .header("keep-alive", "timeout=5")
            .header("upgrade", "h2c")
            .header("http2-settings", "AAMAAABkAAQAAP__")
            .header("transfer-encoding", "chunked")
            .header("x-kept", "1")
            .body(())
            .unwrap();
        prepare(&mut request, Some(&HeaderValue::from_static("inner:80")));
        let mut names: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["hapax-fence", "hapax-retry", "host", "x-kept"]);
        assert_eq!(request.headers()["host"], "inner:80");
    }

    #[test]
    fn what_only_looks_like_a_header_that_counts_is_not_passed_on() {
        let mut request = Request::post("/pay").header("x-tenant", "a");
        for name in [
            "hapax_fence",
            "Hapax_fence-x",
            "idempotency_key",
            "x_forwarded_for",
            "x-forwarded_proto",
            "x_real_ip",
            "content_length",
            "transfer_encoding",
            "x_tenant",
            "x_own",
            "plain_",
        ] {
            request = request.header(name, "1");
        }
        let mut request = request.body(()).unwrap();
        prepare(&mut request, None);
        let mut names: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["plain_", "x-tenant", "x_own"]);
    }

    #[test]
    fn a_client_cannot_have_what_others_said_about_it_removed() {
        let kept = ["authorization", "content-type", "forwarded", "x-forwarded-for", "x-real-ip"];
        let mut request = Request::post("/pay").header("connection", "x-own").header("x-own", "1");
        for name in kept {
            request = request.header("connection", name.to_ascii_uppercase()).header(name, "1");
        }
        let mut request = request.body(()).unwrap();
        prepare(&mut request, None);
        let mut names: Vec<_> = request.headers().keys().map(HeaderName::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, kept);
    }

    #[test]
    fn pieces_of_a_cookie_are_joined_for_an_older_protocol() {
        let mut request = Request::post("/pay")
            .version(Version::HTTP_2)
            .header("cookie", "a=1")
            .header("cookie", "b=2")
            .body(())
            .unwrap();
        prepare(&mut request, None);
        assert_eq!(request.headers()["cookie"], "a=1; b=2");
    }
}
