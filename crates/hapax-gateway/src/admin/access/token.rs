//! Tokens, compared and never shown.

use std::fmt;

use subtle::ConstantTimeEq;

/// A token that is never shown.
#[derive(Clone)]
pub struct AdminSecret(String);

impl AdminSecret {
    /// Keeps the token; `None` if it is blank, which would let everybody in.
    pub fn new(token: impl Into<String>) -> Option<Self> {
        let token = token.into();
        (!token.trim().is_empty()).then_some(Self(token))
    }

    /// Whether this is the token, in a time that says nothing about how much of it is right.
    pub(super) fn is(&self, offered: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(offered).into()
    }
}

impl fmt::Debug for AdminSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AdminSecret(..)")
    }
}

/// The token of a header whose scheme is `Bearer`, however that is capitalised.
pub(super) fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token.trim_ascii())
}
