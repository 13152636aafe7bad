//! Who may use the operations API.

use std::fmt;

use subtle::ConstantTimeEq;

/// A token that is never shown.
#[derive(Clone)]
pub struct Secret(String);

impl Secret {
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

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}
