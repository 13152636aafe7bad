//! What could not be acted on.

use std::fmt;

use super::kept_message::KeptMessage;
use crate::limits::PARK_REASON_BYTES_MAX;

/// A message that is put aside, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    /// The message.
    pub kept: KeptMessage,
    /// Why.
    pub reason: LetterReason,
}

/// Why a message was put aside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterReason {
    code: &'static str,
    detail: String,
}

impl LetterReason {
    /// Its name was used for other content.
    pub fn id_conflict() -> Self {
        Self::new("id-conflict", "the message id was used for other content")
    }

    /// It has no usable name, and so cannot be told from others.
    pub fn no_id(detail: impl Into<String>) -> Self {
        Self::new("no-id", detail)
    }

    /// Its handler failed this often.
    pub fn poison(attempts: u32, detail: &str) -> Self {
        Self::new("poison", format!("it failed {attempts} times, at last with: {detail}"))
    }

    /// A message before it never came.
    pub fn gap() -> Self {
        Self::new("gap", "a message before it did not come in time")
    }

    /// It has to be its turn, and it does not say whose turn, or which.
    pub fn no_version() -> Self {
        Self::new("no-version", "its key or its version is missing")
    }

    /// It is encrypted, and nobody can ever decrypt it.
    pub fn unreadable(why: &str) -> Self {
        Self::new("unreadable", why)
    }

    fn new(code: &'static str, detail: impl Into<String>) -> Self {
        let mut detail: String = detail.into().replace('\0', "\u{fffd}");
        while detail.len() > PARK_REASON_BYTES_MAX {
            detail.pop();
        }
        Self { code, detail }
    }

    /// One word: `id-conflict`, `no-id`, `poison`, `gap`, `no-version` or `unreadable`.
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// In more words.
    pub fn detail(&self) -> &str {
        &self.detail
    }
}

impl fmt::Display for LetterReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.detail)
    }
}
