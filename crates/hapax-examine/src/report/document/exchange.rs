//! What went over the wire, as it stands in a report.

use serde::{Deserialize, Serialize};

/// A request and what came back; times count from the beginning of the probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExchangeDocument {
    /// Which it is, from 1.
    pub number: u32,
    /// What it is for.
    pub label: String,
    /// Which of the addresses it went to, from 0.
    pub address: usize,
    /// `HTTP/1.1` or `HTTP/2`.
    pub protocol: String,
    /// Whose credentials it brought: `main`, `other` or `revoked`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
    /// What was asked.
    pub request: MessageDocument,
    /// Where it was broken off, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutDocument>,
    /// When its first byte was about to leave.
    pub began_micros: u64,
    /// When its last byte had left.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_micros: Option<u64>,
    /// When the first byte of its answer came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_micros: Option<u64>,
    /// When it was over.
    pub ended_micros: u64,
    /// How it ended.
    pub end: EndDocument,
    /// What its answer calls the effect, if it was a success and it is known where that stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
}

/// A request, an answer, or what came of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageDocument {
    /// Its first line and its headers.
    pub head: String,
    /// Its body, or the beginning of it.
    pub body: String,
    /// How long the body is.
    pub body_bytes: usize,
    /// Whether more is there than stands here.
    pub is_shortened: bool,
    /// Whether bytes that cannot be shown are written as `\xNN`.
    pub is_escaped: bool,
}

/// Where an exchange was broken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutDocument {
    /// In what.
    pub within: CutMessage,
    /// After how many bytes of it.
    pub bytes: usize,
    /// And then.
    pub how: CutManner,
}

/// What was broken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutMessage {
    /// The request.
    Request,
    /// Its answer.
    Answer,
}

/// How an exchange was broken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutManner {
    /// It was said that nothing more comes.
    Finish,
    /// The connection was reset.
    Reset,
    /// Nothing was said, and the connection stayed.
    Silence,
}

/// How an exchange ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "how", rename_all = "kebab-case")]
pub enum EndDocument {
    /// With a whole answer.
    Answered {
        /// Its status.
        status: u16,
        /// All of it.
        answer: MessageDocument,
    },
    /// We broke it off.
    BrokenOff {
        /// What had come by then.
        received: MessageDocument,
    },
    /// The other side closed before its answer was whole.
    Closed {
        /// What had come by then.
        received: MessageDocument,
    },
    /// Nothing more came.
    Silent {
        /// What had come by then.
        received: MessageDocument,
    },
    /// It could not be sent, or its answer could not be read.
    Failed {
        /// Why.
        reason: String,
    },
}

impl ExchangeDocument {
    /// What came back, if anything did.
    pub fn received(&self) -> Option<&MessageDocument> {
        match &self.end {
            EndDocument::Answered { answer: message, .. }
            | EndDocument::BrokenOff { received: message }
            | EndDocument::Closed { received: message }
            | EndDocument::Silent { received: message } => {
                (!message.head.is_empty() || !message.body.is_empty()).then_some(message)
            }
            EndDocument::Failed { .. } => None,
        }
    }

    /// How it ended, in a few words: `201 (payment_1)`.
    pub fn outcome(&self) -> String {
        let end = self.end.describe();
        match &self.effect {
            Some(effect) => format!("{end} ({effect})"),
            None => end,
        }
    }

    /// Where it was broken off, in words.
    pub fn cut_text(&self) -> Option<String> {
        let cut = self.cut.as_ref()?;
        let within = match cut.within {
            CutMessage::Request => "the request",
            CutMessage::Answer => "its answer",
        };
        let how = match cut.how {
            CutManner::Finish => "ended",
            CutManner::Reset => "reset",
            CutManner::Silence => "left silent",
        };
        Some(format!("the connection was {how} after {} bytes of {within}", cut.bytes))
    }
}

impl EndDocument {
    /// What happened, in a few words.
    pub fn describe(&self) -> String {
        match self {
            Self::Answered { status, .. } => status.to_string(),
            Self::BrokenOff { .. } => "broken off".to_owned(),
            Self::Closed { .. } => "closed by the server".to_owned(),
            Self::Silent { .. } => "no answer".to_owned(),
            Self::Failed { reason } => reason.clone(),
        }
    }
}
