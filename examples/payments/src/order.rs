//! What a client wants to pay, as it may come in.
//!
//! What would be refused later is refused here, before anybody is charged.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// What a client wants to pay.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Order {
    pub(crate) order: Line,
    pub(crate) cents: NonZeroU32,
    pub(crate) email: Line,
}

/// A line of text that every system behind us takes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct Line(String);

const LINE_BYTES_MAX: usize = 200;

#[derive(Debug, thiserror::Error)]
#[error("write 1 to {LINE_BYTES_MAX} bytes in one line")]
pub(crate) struct NotALine;

impl TryFrom<String> for Line {
    type Error = NotALine;

    fn try_from(text: String) -> Result<Self, NotALine> {
        let fits = (1..=LINE_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control);
        if fits { Ok(Self(text)) } else { Err(NotALine) }
    }
}

impl From<Line> for String {
    fn from(Line(text): Line) -> Self {
        text
    }
}

impl Line {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}
