//! Where messages come from.

use std::{error::Error, fmt, time::Duration};

use bytes::Bytes;
use hapax_core::{
    Header,
    inbox::{Partition, Place},
};

/// A queue, topic or stream that delivers messages at least once.
///
/// A source keeps the broker's books: what is neither acknowledged nor put back is delivered again,
/// to this consumer or another. It interprets nothing: which of its messages are the same, and what
/// becomes of them, is the consumer's business.
pub trait Source: Send + 'static {
    /// The right, and the duty, to say what became of one delivery.
    type Receipt: Receipt;

    /// Waits for whatever happens next. The call may be dropped at any time and made again: what was
    /// on its way then comes with a later call, if only because the broker delivers it again.
    ///
    /// It reconnects by itself for as long as that may help. After an error nothing more comes.
    fn next(&mut self) -> impl Future<Output = Result<Arrived<Self::Receipt>, SourceError>> + Send;

    /// Begins to deliver an [assigned](Arrived::Assigned) partition: from this offset, or from where
    /// the broker was told last, where it is `None`.
    ///
    /// Sources without partitions assign none, and are never asked.
    fn start(
        &mut self,
        partition: &Partition,
        from: Option<i64>,
    ) -> impl Future<Output = Result<(), SourceError>> + Send;

    /// Lets go of [revoked](Arrived::Revoked) partitions: everything that was delivered from them is
    /// settled, or was given up.
    fn release(
        &mut self,
        partitions: &[Partition],
    ) -> impl Future<Output = Result<(), SourceError>> + Send;

    /// The longest time after its first delivery at which the broker may deliver a message again, if
    /// there is a limit: what a consumer must at least remember. `None` where it is not known.
    fn longest_redelivery(&self) -> Option<Duration>;
}

/// Whatever happens next at a source.
#[derive(Debug)]
pub enum Arrived<R> {
    /// A message.
    Message(Delivery<R>),
    /// These partitions are this consumer's from now on. Nothing is delivered from one before it is
    /// [started](Source::start).
    Assigned(Vec<Partition>),
    /// These partitions go to another consumer. Nothing more is delivered from them; the other one
    /// waits, within limits of the broker, until they are [released](Source::release).
    Revoked(Vec<Partition>),
    /// There will be nothing more.
    End,
}

/// A message, and the right to say what became of it.
#[derive(Debug)]
pub struct Delivery<R> {
    /// What was delivered.
    pub incoming: Incoming,
    /// The right to say what became of it.
    pub receipt: R,
}

/// The right, and the duty, to say what became of one delivery. Dropped without a word, the delivery
/// counts as put back: the broker delivers it again when its patience ends.
///
/// Receipts may be settled in another order than they came in. Where a broker acknowledges by offset,
/// the source commits no further than to the first delivery that is not settled.
pub trait Receipt: Send + Sync + 'static {
    /// Says that the message is still being worked on, where a broker would otherwise deliver it to
    /// somebody else; how long its patience lasts from now on. `None` where it waits for ever.
    fn working(&self) -> impl Future<Output = Result<Option<Duration>, SourceError>> + Send;

    /// Says what became of it. When this ends well, a message that is [done](Disposition::Done) is
    /// not delivered again unless the broker forgets; after an error it may be.
    fn settle(
        self,
        disposition: Disposition,
    ) -> impl Future<Output = Result<(), SourceError>> + Send;
}

/// What becomes of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Disposition {
    /// It is final: not to be delivered again.
    Done,
    /// It is to be delivered again, after about this long. Where a source keeps an order, nothing
    /// that is behind it in its partition or group comes before it.
    Later(Duration),
}

/// A message as a broker delivers it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incoming {
    /// The topic, subject or queue it came from.
    pub source: String,
    /// What the broker calls it, the same at every delivery; `None` where the broker has no name for
    /// it.
    pub broker_id: Option<String>,
    /// What its order is kept for: a partition key or message group, where the broker knows one.
    pub key: Option<String>,
    /// What it says.
    pub payload: Bytes,
    /// Its headers, in their order; properties of the broker's own that users set are among them.
    pub headers: Vec<Header>,
    /// Which delivery this is, from 1, where the broker counts.
    pub deliveries: Option<u32>,
    /// Where it stands in an ordered log, if it comes from one.
    pub place: Option<Place>,
}

impl Incoming {
    /// The first value of this header as text, if there is one. Names are compared without case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        let header = headers.find(|header| header.name.eq_ignore_ascii_case(name))?;
        std::str::from_utf8(&header.value).ok()
    }
}

/// A source that cannot go on.
#[derive(Debug)]
pub struct SourceError {
    doing: &'static str,
    cause: Box<dyn Error + Send + Sync>,
}

impl SourceError {
    /// It could not do this, for this reason.
    pub fn new(doing: &'static str, cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { doing, cause: cause.into() }
    }
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the broker did not let us {}", self.doing)
    }
}

impl Error for SourceError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.cause.as_ref())
    }
}
