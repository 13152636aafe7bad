//! Where messages go that could not be acted on.

use std::{fmt, pin::Pin, sync::Arc};

use hapax_core::{
    Header, Timestamp,
    inbox::{LetterReason, Message},
    outbox::{EventId, Lane, Stored},
};
use sha2::{Digest as _, Sha256};

use crate::sink::{Outage, Sink, Verdict};

/// The header that says in one word why a message is a dead letter.
pub const REASON_HEADER: &str = "hapax-dead-reason";
/// The header that says it in more words.
pub const DETAIL_HEADER: &str = "hapax-dead-detail";
/// The header that says where the message came from.
pub const SOURCE_HEADER: &str = "hapax-dead-source";
/// The header that says which message it was.
pub const ID_HEADER: &str = "hapax-dead-message-id";
/// The header that says who could not act on it.
pub const CONSUMER_HEADER: &str = "hapax-dead-consumer";

/// Where messages go that could not be acted on.
///
/// A message is acknowledged only when its letter is safe there; a letter may arrive more than once,
/// under the same id.
///
/// ```
/// use hapax_messaging::{consumer::DeadLetters, sink::Lines};
///
/// let dead = DeadLetters::sink(Lines::stdout(), "orders.dead");
/// # drop(dead);
/// ```
#[derive(Clone, Default)]
pub struct DeadLetters(Option<Arc<Deliver>>);

type Deliver = dyn Fn(Stored) -> Delivering + Send + Sync;
type Delivering = Pin<Box<dyn Future<Output = Result<Vec<Verdict>, Outage>> + Send>>;

impl DeadLetters {
    /// Into a table of the consumer's own database, in one transaction with the record of the message.
    /// This is the default.
    pub fn table() -> Self {
        Self(None)
    }

    /// To a sink, as this topic: the payload as it was, the message's headers, and why.
    pub fn sink(sink: impl Sink, topic: impl Into<String>) -> Self {
        let (sink, topic) = (Arc::new(sink), topic.into());
        Self(Some(Arc::new(move |letter| -> Delivering {
            let (sink, topic) = (Arc::clone(&sink), topic.clone());
            Box::pin(async move { sink.send(&[Stored { topic, ..letter }]).await })
        })))
    }

    /// Whether letters leave the database.
    pub(super) fn leave(&self) -> bool {
        self.0.is_some()
    }

    /// Sends a letter; an error if it is not safe there.
    pub(super) async fn send(
        &self,
        consumer: &str,
        message: &Message,
        reason: &LetterReason,
    ) -> Result<(), Undelivered> {
        let Some(deliver) = &self.0 else { return Ok(()) };
        match deliver(stored(consumer, message, reason)).await {
            Ok(verdicts) if verdicts == [Verdict::Taken] => Ok(()),
            Ok(verdicts) => Err(Undelivered(format!("{verdicts:?}").into())),
            Err(outage) => Err(Undelivered(outage.into())),
        }
    }
}

impl fmt::Debug for DeadLetters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.leave() { "a sink" } else { "a table" };
        f.debug_tuple("DeadLetters").field(&place).finish()
    }
}

/// A dead letter that is not safe where it was sent.
#[derive(Debug, thiserror::Error)]
#[error("a dead letter was not taken")]
pub(super) struct Undelivered(#[source] Box<dyn std::error::Error + Send + Sync>);

/// A letter as an event: its id is the same however often it is sent.
fn stored(consumer: &str, message: &Message, reason: &LetterReason) -> Stored {
    let key = message.key.clone().unwrap_or_else(|| message.id.as_str().to_owned());
    let header = |name: &str, value: &str| {
        let value = value.to_owned().into();
        Header { name: name.to_owned(), value }
    };
    let mut headers = vec![
        header(REASON_HEADER, reason.code()),
        header(DETAIL_HEADER, reason.detail()),
        header(SOURCE_HEADER, &message.source),
        header(ID_HEADER, message.id.as_str()),
        header(CONSUMER_HEADER, consumer),
    ];
    let content_type = message.header("content-type").unwrap_or("application/octet-stream");
    // What goes with an event is text; other values can be had from the broker's own copy.
    let is_text = |header: &&Header| std::str::from_utf8(&header.value).is_ok();
    headers.extend(message.headers.iter().filter(is_text).cloned());
    Stored {
        position: 1,
        lane: Lane::of(&message.source, &key),
        id: id_of(consumer, message),
        at: Timestamp::ZERO,
        topic: message.source.clone(),
        content_type: content_type.to_owned(),
        key,
        headers,
        payload: message.payload.clone(),
    }
}

fn id_of(consumer: &str, message: &Message) -> EventId {
    let digest = Sha256::new()
        .chain_update(consumer)
        .chain_update("\n")
        .chain_update(message.id.as_str())
        .chain_update("\n")
        .chain_update(message.digest().as_bytes())
        .finalize();
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    EventId::from_bytes(id)
}
