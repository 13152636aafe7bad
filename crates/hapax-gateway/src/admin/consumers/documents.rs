//! What is told about consumers. Instants are the database's, in UTC.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use hapax_core::inbox::{
    BoundedCount, ConsumerName, ConsumerSummary, HeldKey, LetterContent, NextDelivery,
    PartitionProgress, RetriedMessage, StoredLetter,
};
use serde::{Deserialize, Serialize};

/// A page of consumers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConsumersDocument {
    /// In the database's order of tenant and name.
    pub consumers: Vec<ConsumerRow>,
    /// Behind which consumer the next page starts, if there is one.
    pub next: Option<ConsumerReference>,
}

/// What a consumer is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsumerReference {
    /// Whose it is.
    pub tenant: String,
    /// Its name.
    pub name: String,
}

impl From<&ConsumerName> for ConsumerReference {
    fn from(ConsumerName { tenant, name }: &ConsumerName) -> Self {
        Self { tenant: tenant.clone(), name: name.clone() }
    }
}

/// A consumer at a glance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConsumerRow {
    /// What it is called.
    #[serde(flatten)]
    pub consumer: ConsumerReference,
    /// For how long what became of a message is remembered.
    pub retention_seconds: f64,
    /// Messages that are remembered.
    pub remembered: CountedUpTo,
    /// Messages that are being tried again.
    pub retried: CountedUpTo,
    /// Messages that are held for their turn.
    pub held: CountedUpTo,
    /// Dead letters.
    pub dead: CountedUpTo,
    /// Whether it keeps how far partitions have come, in place of a record for each message.
    pub keeps_offsets: bool,
}

impl ConsumerRow {
    /// The row of a consumer.
    pub fn of(summary: &ConsumerSummary) -> Self {
        Self {
            consumer: ConsumerReference::from(&summary.name),
            retention_seconds: summary.retention.as_secs_f64(),
            remembered: summary.remembered.into(),
            retried: summary.retried.into(),
            held: summary.held.into(),
            dead: summary.dead.into(),
            keeps_offsets: summary.keeps_offsets,
        }
    }
}

/// A count that ended somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedUpTo {
    /// How many were counted.
    pub count: u64,
    /// Whether there may be more.
    pub more: bool,
}

impl From<BoundedCount> for CountedUpTo {
    fn from(BoundedCount { count, is_more }: BoundedCount) -> Self {
        Self { count, more: is_more }
    }
}

/// A consumer, and how far its partitions are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConsumerDocument {
    /// The consumer.
    #[serde(flatten)]
    pub row: ConsumerRow,
    /// Its partitions in order, up to a thousand of them.
    pub partitions: Vec<PartitionRow>,
    /// Whether there are more.
    pub more_partitions: bool,
}

/// How far a partition has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionRow {
    /// The topic or stream.
    pub source: String,
    /// Its number.
    pub partition: i32,
    /// How often it was taken.
    pub fence: i64,
    /// The first offset that was not acted on.
    pub next: Option<i64>,
}

impl From<&PartitionProgress> for PartitionRow {
    fn from(PartitionProgress { partition, fence, next }: &PartitionProgress) -> Self {
        let source = partition.source.clone();
        Self { source, partition: partition.number, fence: fence.get(), next: *next }
    }
}

/// A page of messages that are being tried again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetriedDocument {
    /// In order of their ids.
    pub messages: Vec<RetriedRow>,
    /// Behind which message the next page starts, if there may be one.
    pub next: Option<String>,
}

/// A message whose attempts failed and that may still succeed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetriedRow {
    /// Its id.
    pub message_id: String,
    /// How many attempts failed.
    pub attempts: u32,
    /// When the last of them did.
    pub failed_at: String,
}

impl From<&RetriedMessage> for RetriedRow {
    fn from(RetriedMessage { message_id, attempts, failed_at }: &RetriedMessage) -> Self {
        let (message_id, failed_at) = (message_id.clone(), failed_at.to_string());
        Self { message_id, attempts: *attempts, failed_at }
    }
}

/// A page of keys with messages that are held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldDocument {
    /// In order.
    pub keys: Vec<HeldRow>,
    /// Behind which key the next page starts, if there is one.
    pub next: Option<String>,
}

/// A key with messages that are held behind a gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldRow {
    /// The key.
    pub key: String,
    /// How many of its messages are held.
    pub held: CountedUpTo,
    /// The lowest version of them: what is missing is before it.
    pub lowest: i64,
    /// Since when that one is held.
    pub since: String,
    /// What the key has come to, if it has come to anything yet.
    pub come_to: Option<i64>,
}

impl From<&HeldKey> for HeldRow {
    fn from(held: &HeldKey) -> Self {
        Self {
            key: held.key.clone(),
            held: held.held.into(),
            lowest: held.lowest,
            since: held.since.to_string(),
            come_to: held.come_to,
        }
    }
}

/// A page of dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LettersDocument {
    /// In order of message and content.
    pub letters: Vec<LetterDocument>,
    /// Behind which letter the next page starts, if there is one.
    pub next: Option<LetterReference>,
}

/// Which dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LetterReference {
    /// The id of its message.
    pub message_id: String,
    /// The digest of its payload, as 32 hexadecimal digits.
    pub content: String,
}

/// A dead letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LetterDocument {
    /// Which one.
    #[serde(flatten)]
    pub reference: LetterReference,
    /// When it was put aside.
    pub dead_at: String,
    /// Why, in one word.
    pub reason: String,
    /// Why, in more words.
    pub detail: String,
    /// The topic, subject or queue it came from.
    pub source: String,
    /// The key of its message, if it has one.
    pub key: Option<String>,
    /// What that key has come to, if a guard keeps it.
    pub come_to: Option<i64>,
    /// How large the payload is.
    pub payload_bytes: u64,
    /// What a delivery of its message meets, if one comes.
    pub next_delivery: DeliveryDocument,
    /// Its content, if it was asked for.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub content: Option<LetterContentDocument>,
}

/// What a delivery of a message meets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryDocument {
    /// It is acted on.
    IsFirst,
    /// Its failure is remembered, and answers it.
    Failed,
    /// It was acted on, or waits for its turn.
    Duplicate,
    /// Its name was used for other content.
    Conflict,
}

impl From<NextDelivery> for DeliveryDocument {
    fn from(next: NextDelivery) -> Self {
        match next {
            NextDelivery::IsFirst => Self::IsFirst,
            NextDelivery::Failed => Self::Failed,
            NextDelivery::Duplicate => Self::Duplicate,
            NextDelivery::Conflict => Self::Conflict,
        }
    }
}

/// The content of a dead letter, as far as it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LetterContentDocument {
    /// Its headers; none if they cannot be read.
    pub headers: Option<Vec<LetterHeader>>,
    /// Whether it is encrypted, and whoever tells it cannot decrypt it.
    #[serde(default)]
    pub encrypted: bool,
    /// How many bytes of its payload follow.
    pub shown_bytes: usize,
    /// They, if they are text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<String>,
    /// They, if they are not text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload_base64: Option<String>,
}

/// A header of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LetterHeader {
    /// Its name.
    pub name: String,
    /// Its value; what is not text in it is marked.
    pub value: String,
}

impl LetterDocument {
    /// The document of a letter, without its content.
    pub fn of(letter: &StoredLetter) -> Self {
        let (message_id, content) = (letter.id.message_id.clone(), letter.id.content.to_string());
        Self {
            reference: LetterReference { message_id, content },
            dead_at: letter.id.dead_at.to_string(),
            reason: letter.reason.clone(),
            detail: letter.detail.clone(),
            source: letter.source.clone(),
            key: letter.key.clone(),
            come_to: letter.come_to,
            payload_bytes: letter.payload_bytes,
            next_delivery: letter.next_delivery.into(),
            content: None,
        }
    }

    /// The same with its content.
    pub fn with_content(content: &LetterContent) -> Self {
        Self { content: Some(LetterContentDocument::of(content)), ..Self::of(&content.letter) }
    }
}

impl LetterContentDocument {
    fn of(content: &LetterContent) -> Self {
        if content.is_sealed() {
            let (headers, payload, payload_base64) = (None, None, None);
            return Self { headers, encrypted: true, shown_bytes: 0, payload, payload_base64 };
        }
        let LetterContent { letter, headers, payload } = content;
        let is_cut = u64::try_from(payload.len()).is_ok_and(|shown| shown < letter.payload_bytes);
        let text = match std::str::from_utf8(payload) {
            Ok(text) => Some(text),
            // The cut may have gone through a character.
            Err(error) if is_cut && error.error_len().is_none() => {
                std::str::from_utf8(&payload[..error.valid_up_to()]).ok()
            }
            Err(_) => None,
        };
        let headers = headers.as_ref().map(|headers| {
            let value = |value| String::from_utf8_lossy(value).into_owned();
            let headers = headers.iter();
            headers
                .map(|one| LetterHeader { name: one.name.clone(), value: value(&one.value) })
                .collect()
        });
        Self {
            headers,
            encrypted: false,
            shown_bytes: text.map_or(payload.len(), str::len),
            payload: text.map(str::to_owned),
            payload_base64: text.is_none().then(|| BASE64_STANDARD.encode(payload)),
        }
    }
}

/// Has a dead letter discarded, or forgiven.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LetterOrder {
    /// The id of its message.
    pub message_id: String,
    /// The digest of its payload.
    pub content: String,
    /// When it was put aside, as you were told.
    pub dead_at: String,
    /// Who wants it; left out by somebody whom a provider signed in.
    #[serde(default)]
    pub who: String,
    /// Why.
    pub why: String,
    /// Whether only to say what would follow.
    #[serde(default)]
    pub dry_run: bool,
}

/// What a change of a letter would come to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LetterForecast {
    /// Whose it is.
    #[serde(flatten)]
    pub consumer: ConsumerReference,
    /// What, in words.
    pub would: String,
    /// The letter.
    pub letter: LetterDocument,
}

/// What was done to a letter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LetterChange {
    /// Whose it was.
    #[serde(flatten)]
    pub consumer: ConsumerReference,
    /// The id of its message.
    pub message_id: String,
    /// What, in a word: `discarded` or `forgiven`.
    pub done: String,
}
