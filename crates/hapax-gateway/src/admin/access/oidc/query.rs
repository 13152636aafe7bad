//! Names and values in an address or a form.

use percent_encoding::utf8_percent_encode;

use crate::config::RESERVED;

pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// `name=value&…`, as addresses and forms have it.
pub(super) fn form(pairs: &[(&str, &str)]) -> String {
    let pairs = pairs.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
    pairs.collect::<Vec<_>>().join("&")
}
