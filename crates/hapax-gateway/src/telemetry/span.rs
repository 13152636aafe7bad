//! A span that has ended, as data.

use std::time::{Duration, SystemTime};

use super::trace_context::{SpanId, TraceContext};

/// A span that has ended: what a collector is told.
#[derive(Debug, Clone)]
pub struct FinishedSpan {
    /// Which span it is, of which trace.
    pub context: TraceContext,
    /// The span it belongs to; `None` if the trace begins with it.
    pub parent: Option<SpanId>,
    /// What vendors of tracing systems said to each other, as it came.
    pub trace_state: String,
    /// A span of another trace that led to it.
    pub link: Option<TraceContext>,
    /// What it is.
    pub kind: SpanKind,
    /// What it is called.
    pub name: String,
    /// When it began.
    pub began_at: SystemTime,
    /// How long it took.
    pub duration: Duration,
    /// What else is known.
    pub attributes: Vec<(&'static str, AttributeValue)>,
    /// Whether it failed.
    pub is_error: bool,
}

/// What a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// A request of a client was answered.
    Server,
    /// The upstream was asked.
    Client,
    /// Something that was queued was run.
    Consumer,
}

/// What is known of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttributeValue {
    /// A text.
    Text(String),
    /// A word that is always the same.
    Word(&'static str),
    /// A number.
    Number(i64),
}

impl From<String> for AttributeValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&'static str> for AttributeValue {
    fn from(word: &'static str) -> Self {
        Self::Word(word)
    }
}

impl From<i64> for AttributeValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}
