//! What a request's target says: one spelling for each path, and which paths could be read as
//! another one.
//!
//! Servers differ in how loosely they read a path: some decode an encoded slash before they route,
//! some ignore case, a last slash or what follows a semicolon. A request that such a server runs as
//! a protected operation must not get there under a spelling that no route recognises.

use std::borrow::Cow;

use http::{Method, Uri, uri::PathAndQuery};

use crate::server::requests::percent;

/// How often a path is decoded when it is read as loosely as any server may.
const DECODINGS_MAX: usize = 3;

/// How the protected service reads the paths it is sent.
///
/// ```
/// use hapax_tower::{PathReading, Routes};
///
/// // The service's router takes `/Payments` and `/payments/` for other paths than `/payments`.
/// let routes = Routes::default().reading(PathReading::Literal);
/// # drop(routes);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathReading {
    /// As loosely as servers are known to: another case, a last slash, an encoded slash or a suffix
    /// such as `.json` may still be the path of a route. What could be is refused.
    Lenient,
    /// As they are written: `/Pay`, `/pay/` and `/pay%2F` are not `/pay`.
    Literal,
}

/// A path in its one spelling, and what is doubtful about it.
pub(crate) struct SpelledPath<'p> {
    /// As RFC 3986 (6.2.2) spells it: nothing encoded that need not be, upper-case digits.
    pub(crate) spelled: Cow<'p, str>,
    pub(crate) doubt: Option<PathDoubt>,
    /// As the loosest reader sees it, where that is more than a matter of case and slashes.
    loose: Option<String>,
}

/// Why a path could be read as another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathDoubt {
    /// Nobody who means one path writes it so: dot segments, back slashes, control characters, a `%`
    /// that encodes nothing.
    Crooked,
    /// It may be meant so, and servers disagree: an encoded slash, an empty segment, a semicolon,
    /// bytes that are no text, a path that is encoded twice.
    Ambiguous,
}

impl<'p> SpelledPath<'p> {
    pub(crate) fn read(path: &'p str) -> Self {
        if is_ordinary(path) {
            return Self { spelled: Cow::Borrowed(path), doubt: None, loose: None };
        }
        let loose = loosely(path);
        match spell(path) {
            Some(spelled) => {
                let doubt = doubt(&spelled, &loose);
                let spelled =
                    if spelled == path { Cow::Borrowed(path) } else { Cow::Owned(spelled) };
                Self { spelled, doubt, loose: Some(loose) }
            }
            None => Self {
                spelled: Cow::Borrowed(path),
                doubt: Some(PathDoubt::Crooked),
                loose: Some(loose),
            },
        }
    }

    /// The path as the loosest reader sees it; case, empty segments and what follows a semicolon
    /// are left to whoever compares it.
    pub(crate) fn loose(&self) -> &str {
        self.loose.as_deref().unwrap_or(&self.spelled)
    }
}

/// A path in the spelling that requests are compared in; `None` if nobody can tell what it names.
///
/// Characters that need not be encoded are not, and the digits of those that are are upper-case.
///
/// ```
/// use hapax_tower::plain_path;
///
/// assert_eq!(plain_path("/caf%c3%a9/%61").as_deref(), Some("/caf%C3%A9/a"));
/// assert_eq!(plain_path("/payments/../admin"), None);
/// ```
pub fn plain_path(path: &str) -> Option<String> {
    let read = SpelledPath::read(path);
    (path.starts_with('/') && read.doubt != Some(PathDoubt::Crooked))
        .then(|| read.spelled.into_owned())
}

/// Whether a server could take this path out of the folder it is put into.
///
/// ```
/// assert!(hapax_tower::leaves_its_folder("/public/%2e%2e/secret"));
/// assert!(!hapax_tower::leaves_its_folder("/public/picture"));
/// ```
pub fn leaves_its_folder(path: &str) -> bool {
    SpelledPath::read(path).doubt == Some(PathDoubt::Crooked)
}

/// Whether a method is written in other letters than methods are. Some servers do not mind.
pub(crate) fn is_misspelled(method: &Method) -> bool {
    method.as_str().bytes().any(|letter| letter.is_ascii_lowercase())
}

/// The same target with another path, if there can be one.
pub(crate) fn with_path(uri: &Uri, path: &str) -> Option<Uri> {
    let mut parts = uri.clone().into_parts();
    let target = match uri.query() {
        Some(query) => [path, "?", query].concat(),
        None => path.to_owned(),
    };
    parts.path_and_query = Some(PathAndQuery::try_from(target).ok()?);
    Uri::from_parts(parts).ok()
}

/// Whether every server reads the path alike, but for its case, its last slash and its suffix.
fn is_ordinary(path: &str) -> bool {
    // A segment that begins with a dot, or has nothing in it, is looked at more closely.
    let mut after_slash = false;
    let is_plain = |byte: u8| {
        let is_doubtful = after_slash && matches!(byte, b'/' | b'.');
        after_slash = byte == b'/';
        ORDINARY[usize::from(byte)] && !is_doubtful
    };
    path.starts_with('/') && path.bytes().all(is_plain)
}

/// The characters that every server takes for themselves, or for the border of a segment.
static ORDINARY: [bool; 256] = {
    let mut ordinary = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        ordinary[byte as usize] = is_unreserved(byte)
            || matches!(byte, b'/' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*')
            || matches!(byte, b'+' | b',' | b'=' | b':' | b'@');
        byte += 1;
    }
    ordinary
};

/// What RFC 3986 calls unreserved: characters that mean the same whether they are encoded or not.
const fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// The path with every encoded character that need not be one decoded; `None` if a `%` encodes
/// nothing.
fn spell(path: &str) -> Option<String> {
    let mut spelled = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        if *first != b'%' {
            spelled.push(*first);
            continue;
        }
        let [high, low, after @ ..] = after else { return None };
        let byte = percent::decoded(*high, *low)?;
        if is_unreserved(byte) {
            spelled.push(byte);
        } else {
            spelled.extend(percent::respelled(*high, *low));
        }
        rest = after;
    }
    String::from_utf8(spelled).ok()
}

/// The path as a server sees it that decodes whatever can be decoded, as often as any does, and
/// takes a back slash for a slash.
fn loosely(path: &str) -> String {
    let mut bytes = path.as_bytes().to_vec();
    for _ in 0..DECODINGS_MAX {
        let decoded = decoded(&bytes);
        if decoded == bytes {
            break;
        }
        bytes = decoded;
    }
    String::from_utf8_lossy(&bytes).replace('\\', "/")
}

fn decoded(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    loop {
        let (byte, after) = match rest {
            [b'%', high, low, after @ ..] => match percent::decoded(*high, *low) {
                Some(byte) => (byte, after),
                None => (b'%', &rest[1..]),
            },
            [byte, after @ ..] => (*byte, after),
            [] => return decoded,
        };
        decoded.push(byte);
        rest = after;
    }
}

fn doubt(spelled: &str, loose: &str) -> Option<PathDoubt> {
    let climbs = || loose.split('/').any(|segment| matches!(named(segment), "." | ".."));
    let turned = || spelled.contains('\\') || spelled.contains("%5C");
    let is_control = |c: char| c.is_ascii_control();
    if !spelled.starts_with('/') || loose.contains(is_control) || turned() || climbs() {
        return Some(PathDoubt::Crooked);
    }
    let twice = || {
        let mut after = spelled.split("%25").skip(1).map(str::as_bytes);
        after.any(
            |after| matches!(after, [high, low, ..] if percent::decoded(*high, *low).is_some()),
        )
    };
    let is_ambiguous = spelled.contains("//")
        || spelled.contains(';')
        || spelled.contains("%3B")
        || spelled.contains("%2F")
        || !spelled.is_ascii()
        || loose.contains(char::REPLACEMENT_CHARACTER)
        || twice();
    is_ambiguous.then_some(PathDoubt::Ambiguous)
}

/// What a segment names, without its parameters and what is around it.
fn named(segment: &str) -> &str {
    let name = segment.split(';').next().unwrap_or_default();
    name.trim_matches(|c: char| c.is_whitespace() || c.is_control())
}

/// A pattern as the loosest reader of paths compares it.
#[derive(Debug, Clone)]
pub(crate) struct Loose {
    /// The names of its segments; `None` stands for any.
    segments: Vec<Option<String>>,
    /// Whether more may follow.
    is_open: bool,
}

impl Loose {
    pub(crate) fn of(pattern: &str) -> Self {
        let (pattern, is_open) = match pattern.strip_suffix('*') {
            Some(start) => (start, true),
            None => (pattern, false),
        };
        let segments = pattern.split('/').filter(|segment| !segment.is_empty());
        let segments = segments.map(|segment| {
            let is_name = segment.starts_with('{') && segment.ends_with('}');
            (!is_name).then(|| loosely(segment))
        });
        Self { segments: segments.collect(), is_open }
    }

    /// Whether some server reads this path as one of the pattern.
    pub(crate) fn fits(&self, path: &str) -> bool {
        // Some servers end a path here once they have decoded it.
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let mut segments = path.split('/').map(named).filter(|name| !name.is_empty()).peekable();
        for wanted in &self.segments {
            let Some(segment) = segments.next() else { return false };
            let is_last = segments.peek().is_none();
            if !wanted.as_deref().is_none_or(|wanted| is_same(segment, wanted, is_last)) {
                return false;
            }
        }
        self.is_open || segments.next().is_none()
    }
}

/// Whether both are the same but for their case, and for a format such as `.json` at the end.
fn is_same(segment: &str, wanted: &str, is_last: bool) -> bool {
    let Some((start, rest)) = segment.split_at_checked(wanted.len()) else { return false };
    start.eq_ignore_ascii_case(wanted) && (rest.is_empty() || is_last && rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_has_one_spelling() {
        for (written, spelled) in [
            ("/pay", "/pay"),
            ("/%70ay", "/pay"),
            ("/%7Ejoe/%41", "/~joe/A"),
            ("/caf%c3%a9", "/caf%C3%A9"),
            ("/a%40b", "/a%40b"),
            ("/a@b:c", "/a@b:c"),
            ("/pay/", "/pay/"),
            ("/.well-known/x", "/.well-known/x"),
            ("/a..b/c.", "/a..b/c."),
            ("/100%25", "/100%25"),
        ] {
            let read = SpelledPath::read(written);
            assert_eq!((&*read.spelled, read.doubt), (spelled, None), "{written}");
        }
    }

    #[test]
    fn what_could_be_another_path_is_noticed() {
        for path in [
            "*",
            "",
            "/./pay",
            "/x/../pay",
            "/x/..",
            "/%2e%2e/pay",
            "/%2E/pay",
            "/..;/pay",
            "/x/..%2fpay",
            "/x%2f../pay",
            "/%252e%252e/pay",
            "/pay%00",
            "/pay%0a",
            "/pay%7f",
            "\\pay",
            "/\\pay",
            "/pay%5c",
            "/pay%5C..",
            "/pay%",
            "/pay%2",
            "/pay%zz",
            "/.%00./x",
            "/%20../x",
        ] {
            assert_eq!(SpelledPath::read(path).doubt, Some(PathDoubt::Crooked), "{path}");
            assert_eq!(plain_path(path), None, "{path}");
            assert!(leaves_its_folder(path), "{path}");
        }
        for path in [
            "/pay%2f", "//pay", "/a//b", "/pay//", "/pay;x=1", "/pay%3bx", "/%2570ay", "/é",
            "/%c0%af", "/%ff",
        ] {
            assert_eq!(SpelledPath::read(path).doubt, Some(PathDoubt::Ambiguous), "{path}");
        }
    }

    #[test]
    fn a_pattern_is_found_under_every_spelling_a_server_may_accept() {
        let fits =
            |pattern: &str, path: &str| Loose::of(pattern).fits(SpelledPath::read(path).loose());
        for path in [
            "/pay",
            "/PAY",
            "/Pay/",
            "//pay",
            "/pay//",
            "/%70ay",
            "/%2570ay",
            "/pay%2f",
            "/%2Fpay",
            "/pay;x=1",
            "/pay%3Bx",
            "/;a/pay",
            "/pay.json",
            "/pay%20",
            "/pay%3Fx",
            "/pay%23x",
            "/pay.",
        ] {
            assert!(fits("/pay", path), "{path}");
        }
        for path in ["/", "/pays", "/pa", "/pay/x", "/x/pay", "/pay-json", "/v1/pay"] {
            assert!(!fits("/pay", path), "{path}");
        }
        assert!(fits("/pay/", "/pay") && fits("/V1/{id}", "/v1/7/") && fits("/v1/*", "/V1/a/b"));
        assert!(fits("/v1/{id}/refunds", "/v1/7/refunds.json"));
        assert!(!fits("/v1/{id}", "/v1") && !fits("/v1/{id}", "/v1/a%2fb"));
    }

    #[test]
    fn a_target_keeps_its_host_and_its_query() {
        let uri: Uri = "http://shop.example/%70ay?a=%70".parse().unwrap();
        assert_eq!(with_path(&uri, "/pay").unwrap(), "http://shop.example/pay?a=%70");
        let uri: Uri = "/%70ay".parse().unwrap();
        assert_eq!(with_path(&uri, "/pay").unwrap(), "/pay");
    }
}
