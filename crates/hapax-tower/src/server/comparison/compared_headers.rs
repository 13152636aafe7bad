//! Which headers tell requests apart.

use http::HeaderName;

/// Headers that tell requests apart, if they are there.
///
/// ```
/// use hapax_tower::{ComparedHeaders, Protection};
/// use http::HeaderName;
///
/// let compared_headers = ComparedHeaders::Named(vec![HeaderName::from_static("x-account")]);
/// let protection = Protection { compared_headers, ..Protection::default() };
/// # drop(protection);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComparedHeaders {
    /// Those of [`ComparedHeaders::USUAL`].
    Usual,
    /// These alone.
    Named(Vec<HeaderName>),
}

impl ComparedHeaders {
    /// What the body is, for which of the caller's accounts it is meant, and what is asked for beside
    /// method and path.
    ///
    /// Without them, somebody who uses one key for two accounts would hear the answer of the first
    /// for the second.
    pub const USUAL: [&str; 14] = [
        "content-type",
        "content-encoding",
        "stripe-account",
        "stripe-context",
        "stripe-version",
        "x-account-id",
        "x-organization-id",
        "x-tenant-id",
        "api-version",
        "x-api-version",
        "x-http-method-override",
        "x-amz-target",
        "soapaction",
        "paypal-auth-assertion",
    ];

    /// Their names, in the order they are compared.
    pub fn names(&self) -> Vec<&str> {
        match self {
            Self::Usual => Self::USUAL.to_vec(),
            Self::Named(names) => names.iter().map(HeaderName::as_str).collect(),
        }
    }

    /// The place of a header among them.
    #[inline]
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        match self {
            Self::Usual => usual_place(name),
            Self::Named(names) => names.iter().position(|chosen| chosen.as_str() == name),
        }
    }
}

/// The place in the list, by a comparison of lengths for most headers there are.
fn usual_place(name: &str) -> Option<usize> {
    Some(match name {
        "content-type" => 0,
        "content-encoding" => 1,
        "stripe-account" => 2,
        "stripe-context" => 3,
        "stripe-version" => 4,
        "x-account-id" => 5,
        "x-organization-id" => 6,
        "x-tenant-id" => 7,
        "api-version" => 8,
        "x-api-version" => 9,
        "x-http-method-override" => 10,
        "x-amz-target" => 11,
        "soapaction" => 12,
        "paypal-auth-assertion" => 13,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_usual_header_has_its_place() {
        for (place, name) in ComparedHeaders::USUAL.into_iter().enumerate() {
            assert_eq!(usual_place(name), Some(place), "{name}");
        }
        assert_eq!(usual_place("accept"), None);
    }
}
