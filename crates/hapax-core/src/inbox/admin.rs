//! What a database does for the people who look after its consumers.

use std::time::Duration;

use bytes::Bytes;

use super::{
    headers::are_sealed,
    judge::{Judgement, StoredMessage, judge},
    message::Digest,
    place::Partition,
};
use crate::{outcome::Header, record::Fence, store::StoreError, time::Timestamp};

/// The tenant of consumers in Rust, and of those that name none.
pub const CONSUMER_TENANT: &str = "messages";

/// An inbox as an operator sees it: who consumes, what is tried again or waits, and what was put
/// aside.
///
/// Nothing is read without a bound, however much is stored: lists come by pages in the order of an
/// index, and counts end at [`INBOX_COUNT_MAX`](crate::limits::INBOX_COUNT_MAX).
///
/// Proven by `hapax_verify::conformance::inbox`.
pub trait InboxAdmin: Send + Sync {
    /// Consumers behind this one, in the database's order of tenant and name.
    fn consumers(
        &self,
        after: Option<ConsumerName>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<ConsumerSummary>, StoreError>> + Send;

    /// This consumer, if it is known.
    fn consumer(
        &self,
        name: ConsumerName,
    ) -> impl Future<Output = Result<Option<ConsumerSummary>, StoreError>> + Send;

    /// How far the partitions of a consumer have come that keeps that here, in their order.
    fn partitions(
        &self,
        consumer: i32,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<PartitionProgress>, StoreError>> + Send;

    /// Messages whose attempts failed and that may still succeed, in order of their ids. So many
    /// counts of attempts are looked at; those of messages that were acted on since are left out.
    fn retried(
        &self,
        consumer: i32,
        after: Option<String>,
        limit: usize,
    ) -> impl Future<Output = Result<RetriedPage, StoreError>> + Send;

    /// Keys with messages that are held for their turn, in order.
    fn held(
        &self,
        consumer: i32,
        after: Option<String>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<HeldKey>, StoreError>> + Send;

    /// Dead letters behind this one, in order of message and content.
    fn letters(
        &self,
        consumer: i32,
        after: Option<(String, Digest)>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<StoredLetter>, StoreError>> + Send;

    /// A dead letter with its headers and the first bytes of its payload.
    fn letter(
        &self,
        consumer: i32,
        message_id: String,
        content: Digest,
        payload_bytes_max: usize,
    ) -> impl Future<Output = Result<Option<LetterContent>, StoreError>> + Send;

    /// Removes a dead letter for good, if it is still this one; whether it was. What the message
    /// came to stays: its next delivery is answered as before.
    fn discard(
        &self,
        consumer: i32,
        letter: LetterId,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Removes a dead letter with the record of its failure and the count of its attempts, all or
    /// nothing; whether both were there. The next delivery of its message is then the first.
    fn forgive(
        &self,
        consumer: i32,
        letter: LetterId,
    ) -> impl Future<Output = Result<bool, StoreError>> + Send;
}

/// What a consumer is called.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConsumerName {
    /// Whose it is; [`CONSUMER_TENANT`] where nobody said otherwise.
    pub tenant: String,
    /// Its name.
    pub name: String,
}

/// A consumer, and how much it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerSummary {
    /// Its number, by which its messages are kept.
    pub number: i32,
    /// What it is called.
    pub name: ConsumerName,
    /// For how long what became of a message is remembered.
    pub retention: Duration,
    /// Messages that are remembered.
    pub remembered: BoundedCount,
    /// Messages that are being tried again.
    pub retried: BoundedCount,
    /// Messages that are held for their turn.
    pub held: BoundedCount,
    /// Dead letters.
    pub dead: BoundedCount,
    /// Whether it keeps how far partitions have come, in place of a record for each message.
    pub keeps_offsets: bool,
}

/// How many there are, if somebody counted to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BoundedCount {
    /// How many were counted.
    pub count: u64,
    /// Whether there may be more.
    pub is_more: bool,
}

impl BoundedCount {
    /// The count of a database that was asked for one more than `most`.
    pub fn up_to(most: usize, counted: u64) -> Self {
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        Self { count: counted.min(most), is_more: counted > most }
    }
}

/// How far a partition has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionProgress {
    /// Which one.
    pub partition: Partition,
    /// How often it was taken.
    pub fence: Fence,
    /// The first offset that was not acted on; `None` where none ever was.
    pub next: Option<i64>,
}

/// Messages that are being tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetriedPage {
    /// The messages; fewer than were asked for where others were acted on since.
    pub messages: Vec<RetriedMessage>,
    /// Behind which message the next page starts, if there may be one.
    pub next: Option<String>,
}

/// A message whose attempts failed and that may still succeed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RetriedMessage {
    /// Its id.
    pub message_id: String,
    /// How many attempts failed.
    pub attempts: u32,
    /// When the last of them did.
    pub failed_at: Timestamp,
}

/// A key with messages that are held for their turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldKey {
    /// The key.
    pub key: String,
    /// How many of its messages are held.
    pub held: BoundedCount,
    /// The lowest version of them: what is missing is before it.
    pub lowest: i64,
    /// Since when that one is held.
    pub since: Timestamp,
    /// What the key has come to; `None` where it has come to nothing yet.
    pub come_to: Option<i64>,
}

/// Which dead letter: another one of the same message and content was written at another time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterId {
    /// The id of its message.
    pub message_id: String,
    /// What its message says.
    pub content: Digest,
    /// When it was put aside.
    pub dead_at: Timestamp,
}

/// A dead letter that is kept, without its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLetter {
    /// Which one.
    pub id: LetterId,
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
    /// What a delivery of its message meets now.
    pub next_delivery: NextDelivery,
}

/// The content of a dead letter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LetterContent {
    /// The letter.
    pub letter: StoredLetter,
    /// Its headers; `None` if they cannot be read.
    pub headers: Option<Vec<Header>>,
    /// The first bytes of its payload.
    pub payload: Bytes,
}

impl LetterContent {
    /// Whether its payload is ciphertext of headers and payload.
    pub fn is_sealed(&self) -> bool {
        self.headers.as_deref().is_some_and(are_sealed)
    }
}

/// What a delivery of a message meets, if one comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextDelivery {
    /// Nothing is remembered of it: it is acted on.
    IsFirst,
    /// Its failure is, which answers it.
    Failed,
    /// It was acted on, or put aside for its turn.
    Duplicate,
    /// Its name was used for other content: it is put aside again.
    Conflict,
}

impl NextDelivery {
    /// What a delivery with this content meets, where this is remembered of its name.
    pub fn of(
        now: Timestamp,
        found: Option<&StoredMessage>,
        content: Digest,
        retention: Duration,
    ) -> Self {
        use super::arrival::MessageAnswer as Answer;
        let Some(found) = found else { return Self::IsFirst };
        match judge(now, found, content, retention) {
            Judgement::Spent => Self::IsFirst,
            Judgement::Answer(Answer::Failed(_)) => Self::Failed,
            Judgement::Answer(Answer::Conflict) => Self::Conflict,
            Judgement::Answer(Answer::Duplicate | Answer::Busy | Answer::Fenced) => Self::Duplicate,
        }
    }
}
