//! How long a body is of which some bytes were taken already.

use http_body::SizeHint;

/// The size of a body that so many bytes come before.
pub(crate) fn after(bytes: usize, rest: &SizeHint) -> SizeHint {
    let before = u64::try_from(bytes).unwrap_or(0);
    let mut hint = SizeHint::new();
    hint.set_lower(rest.lower() + before);
    if let Some(upper) = rest.upper() {
        hint.set_upper(upper + before);
    }
    hint
}
