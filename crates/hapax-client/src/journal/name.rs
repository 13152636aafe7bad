use std::fmt;

use hapax_core::{InvalidName, Key};

/// What the caller calls an operation: 1 to 255 visible ASCII characters, as for a key.
///
/// ```
/// use hapax_client::journal::Name;
///
/// assert_eq!(Name::parse("charge-order-42")?.to_string(), "charge-order-42");
/// assert!(Name::parse("").is_err());
/// # Ok::<(), hapax_core::InvalidName>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Key);

impl Name {
    /// Accepts visible ASCII (inner spaces included) within the limit, as it is.
    pub fn parse(raw: impl AsRef<[u8]>) -> Result<Self, InvalidName> {
        Key::parse(raw).map(Self)
    }

    /// The text as it came.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
