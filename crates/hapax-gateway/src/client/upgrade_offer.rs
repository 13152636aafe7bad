//! The wish of a client to go on in another protocol on its connection, and who may take it up.

use bytes::BytesMut;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Version,
    header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, UPGRADE},
};
use http_body::Body;

use super::connect::Io;

/// The protocols that a client offers to go on in, of those that are passed on.
#[derive(Debug, Clone)]
pub(crate) struct UpgradeOffer(HeaderValue);

/// A connection to the upstream that is no longer HTTP.
pub(crate) struct SwitchedConnection {
    pub(crate) io: Io,
    /// What the upstream has said in the new protocol already.
    pub(crate) read_ahead: BytesMut,
    /// What it speaks, as it said itself.
    pub(crate) protocol: HeaderValue,
}

/// Protocols in which requests would follow that nobody here looks at: they get round every route.
const NEVER_PASSED: [&str; 3] = ["http", "h2", "tls"];

impl UpgradeOffer {
    /// What a request offers, where it is one that changes nothing, has no body and asks by the
    /// rules. Anything else is answered as if it had not asked, as RFC 9110 7.8 allows.
    pub(crate) fn of<B: Body>(request: &Request<B>) -> Option<Self> {
        let headers = request.headers();
        let may_ask = request.version() == Version::HTTP_11
            && *request.method() == Method::GET
            && !headers.contains_key(TRANSFER_ENCODING)
            && request.body().is_end_stream();
        if !may_ask || !words(headers, &CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"))
        {
            return None;
        }
        let offered: Vec<_> = words(headers, &UPGRADE).filter(|word| is_passed(word)).collect();
        if offered.is_empty() {
            return None;
        }
        HeaderValue::try_from(offered.join(", ")).ok().map(Self)
    }

    /// Writes it into the head of a request that has none of its client's.
    pub(crate) fn say(&self, headers: &mut HeaderMap) {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, self.0.clone());
    }

    /// The protocol that this answer with status 101 switches to, if it is one that was offered and
    /// nothing in the head says otherwise.
    pub(super) fn taken_up(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        if headers.contains_key(CONTENT_LENGTH) || headers.contains_key(TRANSFER_ENCODING) {
            return None;
        }
        let mut lines = headers.get_all(UPGRADE).iter();
        let (Some(line), None) = (lines.next(), lines.next()) else { return None };
        let chosen = line.to_str().ok()?.trim();
        let mut offered = self.0.to_str().unwrap_or_default().split(", ");
        let was_offered = offered.any(|word| word.eq_ignore_ascii_case(chosen));
        let switches = words(headers, &CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"));
        (was_offered && switches).then(|| line.clone())
    }
}

/// The words of a header whose lines are lists.
fn words<'h>(headers: &'h HeaderMap, name: &'h HeaderName) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

/// Whether a protocol may follow on a connection of which nobody looks at what is said: `websocket`
/// may, `h2c` and `HTTP/2.0` would be requests that no route has seen.
fn is_passed(protocol: &str) -> bool {
    let name = protocol.split('/').next().unwrap_or_default().to_ascii_lowercase();
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~/".contains(&byte);
    protocol.bytes().all(is_token) && !NEVER_PASSED.iter().any(|never| name.starts_with(never))
}

#[cfg(test)]
mod tests {
    use http_body_util::{Empty, Full};

    use super::*;

    type NoBody = Empty<bytes::Bytes>;

    fn offered(method: Method, version: Version, lines: &[(&str, &str)]) -> Option<String> {
        let mut request = Request::builder().method(method).version(version);
        for (name, value) in lines {
            request = request.header(*name, *value);
        }
        let offer = UpgradeOffer::of(&request.body(NoBody::new()).unwrap())?;
        Some(offer.0.to_str().unwrap().to_owned())
    }

    #[test]
    fn a_get_that_asks_by_the_rules_offers_what_is_not_http() {
        let asks = ("connection", "keep-alive, Upgrade");
        for (upgrade, passed) in [
            ("websocket", Some("websocket")),
            ("WebSocket", Some("WebSocket")),
            ("h2c, websocket, IRC/6.9", Some("websocket, IRC/6.9")),
            ("h2c", None),
            ("H2C, HTTP/2.0, http/1.1, TLS/1.3, h2", None),
            ("web socket", None),
            ("", None),
        ] {
            let lines = [asks, ("upgrade", upgrade)];
            let found = offered(Method::GET, Version::HTTP_11, &lines);
            assert_eq!(found.as_deref(), passed, "{upgrade}");
        }
    }

    #[test]
    fn whoever_does_not_ask_by_the_rules_offers_nothing() {
        let lines = [("connection", "upgrade"), ("upgrade", "websocket")];
        assert_eq!(offered(Method::POST, Version::HTTP_11, &lines), None);
        assert_eq!(offered(Method::GET, Version::HTTP_10, &lines), None);
        assert_eq!(offered(Method::GET, Version::HTTP_2, &lines), None);
        assert_eq!(offered(Method::GET, Version::HTTP_11, &lines[..1]), None);
        assert_eq!(offered(Method::GET, Version::HTTP_11, &lines[1..]), None);
        let mut with_body = Request::new(Full::new(bytes::Bytes::from("x")));
        lines[0..2].iter().for_each(|(name, value)| {
            with_body.headers_mut().insert(*name, HeaderValue::from_static(value));
        });
        assert!(UpgradeOffer::of(&with_body).is_none());
    }

    #[test]
    fn an_answer_switches_to_what_was_offered_and_to_nothing_else() {
        let offer = UpgradeOffer(HeaderValue::from_static("websocket, irc"));
        let taken = |lines: &[(&'static str, &'static str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, HeaderValue::from_static(value));
            }
            offer.taken_up(&headers).map(|taken| taken.to_str().unwrap().to_owned())
        };
        let switches = ("connection", "Upgrade");
        assert_eq!(taken(&[switches, ("upgrade", "IRC")]).as_deref(), Some("IRC"));
        for lines in [
            &[switches][..],
            &[("upgrade", "websocket")],
            &[switches, ("upgrade", "h2c")],
            &[switches, ("upgrade", "websocket, irc")],
            &[switches, ("upgrade", "websocket"), ("upgrade", "irc")],
            &[switches, ("upgrade", "websocket"), ("content-length", "0")],
            &[switches, ("upgrade", "websocket"), ("transfer-encoding", "chunked")],
        ] {
            assert_eq!(taken(lines), None, "{lines:?}");
        }
    }
}
