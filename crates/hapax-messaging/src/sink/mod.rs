//! Where events are sent: brokers, addresses, streams of lines.
//!
//! - `address`: [`SinkAddress`], where a sink is, as people write it; `any`: [`AnySink`], what stands there;
//! - `kafka_address`: [`KafkaAddress`], brokers, and how they are told who asks;
//! - `outage`: [`Outage`], a place that takes nothing now;
//! - `chains`: [`in_chains`], for sinks that send one event at a time;
//! - [`cloudevent`]: how an event is written, alike for all places;
//! - `lines`: [`Lines`], to standard output or any other writer;
//! - [`webhook`]: to somebody's address, signed;
//! - `kafka`, `nats`, `rabbitmq`, `sqs`: to brokers, each with the feature of its name.

mod address;
mod any_sink;
mod chains;
pub mod cloudevent;
#[cfg(feature = "kafka")]
mod kafka;
mod kafka_address;
mod lines;
#[cfg(feature = "nats")]
mod nats;
mod outage;
#[cfg(feature = "rabbitmq")]
mod rabbitmq;
#[cfg(feature = "sqs")]
mod sqs;
#[cfg(feature = "signatures")]
pub mod webhook;

use hapax_core::outbox::Stored;

#[cfg(feature = "kafka")]
pub use self::kafka::{InvalidKafka, Kafka, KafkaOptions};
#[cfg(feature = "nats")]
pub use self::nats::Nats;
#[cfg(feature = "rabbitmq")]
pub use self::rabbitmq::RabbitMq;
#[cfg(feature = "sqs")]
pub use self::sqs::Sqs;
pub use self::{
    address::{InvalidSinkAddress, SinkAddress},
    any_sink::{AnySink, SinkError},
    chains::in_chains,
    cloudevent::CloudEvents,
    kafka_address::{InvalidKafkaAddress, KafkaAddress},
    lines::Lines,
    outage::Outage,
};

/// A place that takes events.
///
/// A sink keeps no books: whoever calls it hands over again, with the same ids, what was not taken.
/// It waits for the answers, and says of each event what became of it. Two calls at the same time
/// never have events of the same topic and key.
///
/// ```
/// use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
///
/// use hapax_core::outbox::Stored;
/// use hapax_messaging::sink::{Outage, Sink, Verdict};
///
/// /// Counts what it is given.
/// #[derive(Default)]
/// struct Counter(AtomicUsize);
///
/// impl Sink for Counter {
///     async fn send(&self, events: &[Stored]) -> Result<Vec<Verdict>, Outage> {
///         self.0.fetch_add(events.len(), Relaxed);
///         Ok(vec![Verdict::Taken; events.len()])
///     }
/// }
/// ```
pub trait Sink: Send + Sync + 'static {
    /// Sends these events and says of each, in the same order, what became of it.
    ///
    /// Events of one topic and key arrive in the order given here. After one that was not
    /// [`Taken`](Verdict::Taken), none of the later ones with its topic and key is sent: they are
    /// [`Behind`](Verdict::Behind). Different keys may overtake each other. The call ends within a
    /// time of the sink's own, whatever the place does.
    fn send(&self, events: &[Stored]) -> impl Future<Output = Result<Vec<Verdict>, Outage>> + Send;
}

/// What became of an event.
///
/// ```
/// use hapax_messaging::sink::Verdict;
///
/// /// What a place that answers with words says about an event.
/// fn verdict(word: &str) -> Verdict {
///     match word {
///         "ok" => Verdict::Taken,
///         "too large" => Verdict::Refused(word.to_owned()),
///         _ => Verdict::Missed(word.to_owned()),
///     }
/// }
/// # assert_eq!(verdict("ok"), Verdict::Taken);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It is safe where it was sent to.
    Taken,
    /// It will not be taken, however often it is sent, and this is why.
    Refused(String),
    /// Nobody knows, or not now, for a reason that is the event's own: to be sent again.
    Missed(String),
    /// It was not sent, because an earlier one of its key was not taken.
    Behind,
}
