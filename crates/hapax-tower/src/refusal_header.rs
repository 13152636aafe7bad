//! Whether an answer is one of Hapax's refusals, and which.

use http::{HeaderMap, HeaderName, header::CONTENT_TYPE};

const PROBLEM: &[u8] = b"application/problem+json";

/// The code of a refusal: what no other server says by accident.
pub(crate) const REFUSAL: HeaderName = HeaderName::from_static("hapax-refusal");

/// Whose words a refusal is in, where it is no problem document.
pub(crate) const DIALECT: HeaderName = HeaderName::from_static("hapax-dialect");

/// Whether an answer says that it is a problem document.
pub(crate) fn is_problem(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    let start = kind.and_then(|kind| kind.get(..PROBLEM.len()));
    start.is_some_and(|start| start.eq_ignore_ascii_case(PROBLEM))
}

/// The code of one of our refusals, as its server marked it. That a page of anybody's is called like
/// one of ours means nothing.
pub(crate) fn code(headers: &HeaderMap) -> Option<&str> {
    let is_meant = || is_problem(headers) || headers.contains_key(DIALECT);
    let code = headers.get(REFUSAL).filter(|_| is_meant())?;
    code.to_str().ok()
}
