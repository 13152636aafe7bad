//! Which page describes an answer, where it is a problem document of RFC 9457.

use http::{
    HeaderMap,
    header::{CONTENT_TYPE, LINK},
};

const PROBLEM: &[u8] = b"application/problem+json";

/// Whether an answer says that it is a problem document.
pub(crate) fn is_problem(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    let start = kind.and_then(|kind| kind.get(..PROBLEM.len()));
    start.is_some_and(|start| start.eq_ignore_ascii_case(PROBLEM))
}

/// The last part of the page that describes the problem: the code of one of our refusals.
pub(crate) fn code(headers: &HeaderMap) -> Option<&str> {
    let lines = headers.get_all(LINK).iter().filter_map(|line| line.to_str().ok());
    let links =
        lines.flat_map(|line| line.split('<').skip(1)).filter_map(|link| link.split_once('>'));
    let described = |params: &str| params.replace('"', "").contains("rel=describedby");
    links.filter(|(_, params)| described(params)).find_map(|(page, _)| page.rsplit('/').next())
}
