//! What went over the wire for one request.

use std::time::Duration;

use bytes::Bytes;

use crate::wire::WireCut;

/// A request, what came back, and when. Times count from the beginning of the probe.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Which it is in its probe, from 1.
    pub number: u32,
    /// What it is for: `first`, `duplicate 3`, `retry`.
    pub label: String,
    /// Which of the API's addresses it went to.
    pub address: usize,
    /// How it went there.
    pub protocol: WireProtocol,
    /// The request as HTTP/1.1 has it, whole, also where it was cut or went over HTTP/2.
    pub request: Bytes,
    /// Where it was broken off, if it was.
    pub cut: Option<WireCut>,
    /// When its first byte was about to leave.
    pub began: Duration,
    /// When its last byte had left.
    pub sent: Option<Duration>,
    /// When the first byte of its answer came.
    pub answered: Option<Duration>,
    /// When it was over.
    pub ended: Duration,
    /// How it ended.
    pub end: ExchangeEnd,
}

/// How a request went over the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireProtocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// How an exchange ended.
#[derive(Debug, Clone)]
pub enum ExchangeEnd {
    /// With a whole answer.
    Answered(RawAnswer),
    /// We broke it off, as the probe wanted; this had come by then.
    BrokenOff {
        /// What had come of the answer.
        received: Bytes,
    },
    /// The other side closed before its answer was whole; this had come by then.
    Closed {
        /// What had come of the answer.
        received: Bytes,
    },
    /// Nothing more came for as long as we wait.
    Silent {
        /// What had come of the answer.
        received: Bytes,
    },
    /// It could not be sent, or its answer could not be read.
    Failed {
        /// Why, in words.
        reason: String,
    },
}

/// An answer as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawAnswer {
    /// The status.
    pub status: u16,
    /// The headers, names in lower case, in the order in which they came.
    pub headers: Vec<(String, String)>,
    /// The body, without chunks.
    pub body: Bytes,
}

impl Exchange {
    /// The answer, if a whole one came.
    pub fn answer(&self) -> Option<&RawAnswer> {
        match &self.end {
            ExchangeEnd::Answered(answer) => Some(answer),
            ExchangeEnd::BrokenOff { .. }
            | ExchangeEnd::Closed { .. }
            | ExchangeEnd::Silent { .. }
            | ExchangeEnd::Failed { .. } => None,
        }
    }

    /// The status, if a whole answer came.
    pub fn status(&self) -> Option<u16> {
        self.answer().map(|answer| answer.status)
    }

    /// Whether a whole answer of 2xx came.
    pub fn succeeded(&self) -> bool {
        self.answer().is_some_and(RawAnswer::is_success)
    }
}

impl ExchangeEnd {
    /// What happened, in words.
    pub fn describe(&self) -> String {
        let after = |received: &Bytes| match received.len() {
            0 => "before anything came".to_owned(),
            bytes => format!("after {bytes} bytes"),
        };
        match self {
            Self::Answered(answer) => format!("answered with {}", answer.status),
            Self::BrokenOff { received } => format!("broken off by us {}", after(received)),
            Self::Closed { received } => format!("closed by the server {}", after(received)),
            Self::Silent { received } => format!("no more was heard {}", after(received)),
            Self::Failed { reason } => reason.clone(),
        }
    }
}

impl RawAnswer {
    /// The first header of this name, in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(given, _)| given.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    /// Whether it is a 2xx.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether it is a 4xx.
    pub fn is_refusal(&self) -> bool {
        (400..500).contains(&self.status)
    }

    /// Whether it says that the first request is still being worked on, or that nobody can say now: 409, 425, 429, 503.
    pub fn asks_to_come_back(&self) -> bool {
        matches!(self.status, 409 | 425 | 429 | 503)
    }
}
