//! Where events are sent.

use std::{error::Error, fmt, future::Future, time::Duration};

use hapax_core::outbox::Stored;

/// A place that takes events: a broker, an address, a stream of lines.
///
/// A sink keeps no order and no books: whoever calls it never hands over two events of one key at
/// once, and hands over again, with the same ids, what was not taken. It sends everything it is given
/// at the same time, waits for the answers, and says of each event what became of it.
pub trait Sink: Send + Sync + 'static {
    /// Sends these events, no two of them with the same topic and key, and says of each, in the same
    /// order, what became of it.
    fn send(&self, events: &[Stored]) -> impl Future<Output = Result<Vec<Verdict>, Outage>> + Send;
}

/// What became of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is safe where it was sent to.
    Taken,
    /// It will not be taken, however often it is sent, and this is why.
    Refused(String),
    /// Nobody knows, or not now: to be sent again.
    Missed(String),
}

/// The place cannot be reached, or takes nothing now: not the fault of any event, so it costs none
/// of them an attempt.
#[derive(Debug)]
pub struct Outage {
    cause: Box<dyn Error + Send + Sync>,
    retry_after: Option<Duration>,
}

impl Outage {
    /// An outage, and why.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { cause: cause.into(), retry_after: None }
    }

    /// The same, with the time the place asked for.
    #[must_use]
    pub fn retry_after(self, pause: Duration) -> Self {
        Self { retry_after: Some(pause), ..self }
    }

    /// How long the place asked to be left alone.
    pub fn pause(&self) -> Option<Duration> {
        self.retry_after
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the destination takes nothing now")
    }
}

impl Error for Outage {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.cause.as_ref())
    }
}
