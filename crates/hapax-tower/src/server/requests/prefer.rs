//! What the client prefers, by RFC 7240.

use std::time::Duration;

use http::{HeaderMap, HeaderName};

pub(crate) const PREFER: HeaderName = HeaderName::from_static("prefer");
pub(crate) const PREFERENCE_APPLIED: HeaderName = HeaderName::from_static("preference-applied");

/// The preferences that matter here; what is not understood is ignored, as the standard says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Prefer {
    pub(crate) wait: Option<Duration>,
    pub(crate) respond_async: bool,
}

pub(crate) fn read(headers: &HeaderMap) -> Prefer {
    let mut prefer = Prefer::default();
    if !headers.contains_key(PREFER) {
        return prefer;
    }
    let lines = headers.get_all(PREFER).iter().filter_map(|line| line.to_str().ok());
    for preference in lines.flat_map(|line| line.split(',')) {
        let without_parameters = preference.split(';').next().unwrap_or_default();
        let (name, value) = match without_parameters.split_once('=') {
            Some((name, value)) => (name.trim(), value.trim().trim_matches('"')),
            None => (without_parameters.trim(), ""),
        };
        if name.eq_ignore_ascii_case("respond-async") {
            prefer.respond_async = true;
        } else if name.eq_ignore_ascii_case("wait") && prefer.wait.is_none() {
            prefer.wait = value.parse().ok().map(Duration::from_secs);
        }
    }
    prefer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &'static str, wait: Option<u64>, respond_async: bool) {
        let headers = HeaderMap::from_iter([(PREFER, http::HeaderValue::from_static(line))]);
        let wait = wait.map(Duration::from_secs);
        assert_eq!(read(&headers), Prefer { wait, respond_async }, "{line}");
    }

    #[test]
    fn preferences_are_read_and_unknown_ones_ignored() {
        check("wait=7", Some(7), false);
        check("Respond-Async, wait=\"10\"", Some(10), true);
        check("return=minimal; foo=bar, wait=3;x", Some(3), false);
        check("wait=-1", None, false);
        check("wait=soon", None, false);
        check("respond-asynchronously", None, false);
    }
}
