//! What people are told about consumers, and what they have changed.

use std::time::Duration;

use bytes::Bytes;
use hapax_core::{
    Fence, StoreError, Timestamp,
    inbox::{
        BoundedCount, ConsumerName, ConsumerSummary, Digest, HeldKey, LetterContent, LetterId,
        MessageState, NextDelivery, Partition, PartitionProgress, RetriedMessage, RetriedPage,
        StoredLetter, StoredMessage, decode_headers,
    },
    limits::INBOX_COUNT_MAX,
};

use super::{
    InboxAdminContext,
    values::{self, stamped},
};
use crate::{ResultRow, Session, TransactionFault, Value};

/// One more than is counted, which says whether there are more.
const COUNTED: i64 = INBOX_COUNT_MAX as i64 + 1;

/// Consumers behind this one.
pub async fn consumers(
    session: &mut impl Session,
    context: InboxAdminContext,
    after: Option<&ConsumerName>,
    limit: usize,
) -> Result<Vec<ConsumerSummary>, StoreError> {
    let mut found = from(session, context, after, limit.saturating_add(1)).await?;
    found.retain(|summary| Some(&summary.name) != after);
    found.truncate(limit);
    Ok(found)
}

/// This consumer, if it is known.
pub async fn consumer(
    session: &mut impl Session,
    context: InboxAdminContext,
    name: &ConsumerName,
) -> Result<Option<ConsumerSummary>, StoreError> {
    let found = from(session, context, Some(name), 1).await?;
    Ok(found.into_iter().next().filter(|summary| summary.name == *name))
}

/// Consumers from this one on.
async fn from(
    session: &mut impl Session,
    InboxAdminContext { statements, now }: InboxAdminContext,
    first: Option<&ConsumerName>,
    limit: usize,
) -> Result<Vec<ConsumerSummary>, StoreError> {
    let [tenant, name] = first.map_or(["", ""], |first| [&first.tenant, &first.name]);
    let values = [tenant.into(), name.into(), number(limit), COUNTED.into()];
    let rows = session.ask(statements.consumers, &stamped(values, now)).await.map_err(read)?;
    rows.iter().map(|row| summary(row).map_err(read)).collect()
}

/// How far the partitions of a consumer have come.
pub async fn partitions(
    session: &mut impl Session,
    InboxAdminContext { statements, .. }: InboxAdminContext,
    consumer: i32,
    limit: usize,
) -> Result<Vec<PartitionProgress>, StoreError> {
    let values = [consumer.into(), number(limit)];
    let rows = session.ask(statements.partitions, &values).await.map_err(read)?;
    rows.iter().map(|row| progress(row).map_err(read)).collect()
}

/// Messages that are being tried again.
pub async fn retried(
    session: &mut impl Session,
    InboxAdminContext { statements, now }: InboxAdminContext,
    consumer: i32,
    after: Option<&str>,
    limit: usize,
) -> Result<RetriedPage, StoreError> {
    let values = [consumer.into(), after.unwrap_or_default().into(), number(limit)];
    let rows = session.ask(statements.retried, &stamped(values, now)).await.map_err(read)?;
    let last = rows.last().filter(|_| rows.len() >= limit);
    let next = last.map(|row| row.text(0).map(str::to_owned)).transpose().map_err(read)?;
    let mut messages = Vec::new();
    for row in &rows {
        if row.flag(3).map_err(read)? {
            messages.push(retried_message(row).map_err(read)?);
        }
    }
    Ok(RetriedPage { messages, next })
}

/// Keys with messages that are held for their turn.
pub async fn held(
    session: &mut impl Session,
    InboxAdminContext { statements, .. }: InboxAdminContext,
    consumer: i32,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<HeldKey>, StoreError> {
    let values = [consumer.into(), after.into(), number(limit), COUNTED.into()];
    let rows = session.ask(statements.held, &values).await.map_err(read)?;
    rows.iter().map(|row| held_key(row).map_err(read)).collect()
}

/// Dead letters behind this one.
pub async fn letters(
    session: &mut impl Session,
    InboxAdminContext { statements, now }: InboxAdminContext,
    consumer: i32,
    after: Option<(&str, &Digest)>,
    limit: usize,
) -> Result<Vec<StoredLetter>, StoreError> {
    let (message_id, content) =
        after.map_or(("", &[][..]), |(id, content)| (id, content.as_bytes()));
    let values = [consumer.into(), message_id.into(), content.into(), number(limit)];
    let rows = session.ask(statements.letters, &stamped(values, now)).await.map_err(read)?;
    rows.iter().map(|row| letter_without_payload(row).map_err(read)).collect()
}

/// A dead letter with its headers and the first bytes of its payload.
pub async fn letter(
    session: &mut impl Session,
    InboxAdminContext { statements, now }: InboxAdminContext,
    consumer: i32,
    message_id: &str,
    content: &Digest,
    payload_bytes_max: usize,
) -> Result<Option<LetterContent>, StoreError> {
    let values =
        [consumer.into(), message_id.into(), content.as_bytes().into(), number(payload_bytes_max)];
    let rows = session.ask(statements.letter, &stamped(values, now)).await.map_err(read)?;
    let Some(row) = rows.first() else { return Ok(None) };
    let letter = letter_without_payload(row).map_err(read)?;
    let headers = decode_headers(row.bytes(14).map_err(read)?);
    let payload = Bytes::copy_from_slice(row.bytes(15).map_err(read)?);
    Ok(Some(LetterContent { letter, headers, payload }))
}

/// Removes a dead letter, if it is still this one; whether it was.
pub async fn discard(
    session: &mut impl Session,
    InboxAdminContext { statements, .. }: InboxAdminContext,
    consumer: i32,
    letter: &LetterId,
) -> Result<bool, TransactionFault> {
    let gone = session.ask(statements.discard, &values::letter_id(consumer, letter)).await?;
    Ok(!gone.is_empty())
}

/// Removes a dead letter and what is remembered of its failure; whether both were there.
///
/// Where that takes several statements they are in one transaction, and the first finds out; a fault
/// takes back all of them.
pub async fn forgive(
    session: &mut impl Session,
    InboxAdminContext { statements, .. }: InboxAdminContext,
    consumer: i32,
    letter: &LetterId,
) -> Result<bool, TransactionFault> {
    let values = values::letter_id(consumer, letter);
    for (at, text) in statements.forgive.iter().enumerate() {
        let gone = session.ask(text, &values).await?;
        if at == 0 && gone.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn summary(row: &impl ResultRow) -> Result<ConsumerSummary, TransactionFault> {
    let counted = |at| unsigned(row, at).map(|count| BoundedCount::up_to(INBOX_COUNT_MAX, count));
    // Attempts are looked at up to the bound, and those of messages that are done not counted.
    let looked_at = counted(5)?;
    Ok(ConsumerSummary {
        number: small(row, 0)?,
        name: ConsumerName { tenant: row.text(1)?.to_owned(), name: row.text(2)?.to_owned() },
        retention: Duration::from_micros(unsigned(row, 3)?),
        remembered: counted(4)?,
        retried: BoundedCount { count: counted(6)?.count, is_more: looked_at.is_more },
        held: counted(7)?,
        dead: counted(8)?,
        keeps_offsets: row.flag(9)?,
    })
}

fn progress(row: &impl ResultRow) -> Result<PartitionProgress, TransactionFault> {
    let partition = Partition { source: row.text(0)?.to_owned(), number: small(row, 1)? };
    let fence =
        Fence::from_stored(row.number(2)?).ok_or_else(|| TransactionFault::unexpected(2))?;
    Ok(PartitionProgress { partition, fence, next: row.maybe_number(3)? })
}

fn retried_message(row: &impl ResultRow) -> Result<RetriedMessage, TransactionFault> {
    Ok(RetriedMessage {
        message_id: row.text(0)?.to_owned(),
        attempts: u32::try_from(row.number(1)?).unwrap_or(u32::MAX),
        failed_at: Timestamp::from_micros(row.number(2)?),
    })
}

fn held_key(row: &impl ResultRow) -> Result<HeldKey, TransactionFault> {
    Ok(HeldKey {
        key: row.text(0)?.to_owned(),
        held: BoundedCount::up_to(INBOX_COUNT_MAX, unsigned(row, 1)?),
        lowest: row.number(2)?,
        since: Timestamp::from_micros(row.number(3)?),
        come_to: row.maybe_number(4)?,
    })
}

/// Columns: id, content, when, reason, detail, source, key, what that has come to, how many bytes; then
/// the consumer's retention and the trusted clock; then content, state and time of the record, if any.
fn letter_without_payload(row: &impl ResultRow) -> Result<StoredLetter, TransactionFault> {
    let digest = |at| {
        let bytes = row.maybe_bytes(at)?.map(<[u8; 16]>::try_from).transpose();
        bytes
            .map(|bytes| bytes.map(Digest::from_bytes))
            .map_err(|_| TransactionFault::unexpected(at))
    };
    let content = digest(1)?.ok_or_else(|| TransactionFault::unexpected(1))?;
    let retention = Duration::from_micros(unsigned(row, 9)?);
    let now = Timestamp::from_micros(row.number(10)?);
    let found = match digest(11)? {
        None => None,
        Some(digest) => {
            let state = MessageState::from_number(row.small(12)?, None);
            let state = state.ok_or_else(|| TransactionFault::unexpected(12))?;
            let received_at = Timestamp::from_micros(row.number(13)?);
            Some(StoredMessage { digest, state, received_at })
        }
    };
    let dead_at = Timestamp::from_micros(row.number(2)?);
    Ok(StoredLetter {
        id: LetterId { message_id: row.text(0)?.to_owned(), content, dead_at },
        reason: row.text(3)?.to_owned(),
        detail: row.text(4)?.to_owned(),
        source: row.text(5)?.to_owned(),
        key: row.maybe_text(6)?.map(str::to_owned),
        come_to: row.maybe_number(7)?,
        payload_bytes: unsigned(row, 8)?,
        next_delivery: NextDelivery::of(now, found.as_ref(), content, retention),
    })
}

fn unsigned(row: &impl ResultRow, at: usize) -> Result<u64, TransactionFault> {
    u64::try_from(row.number(at)?).map_err(|_| TransactionFault::unexpected(at))
}

fn small(row: &impl ResultRow, at: usize) -> Result<i32, TransactionFault> {
    i32::try_from(row.number(at)?).map_err(|_| TransactionFault::unexpected(at))
}

fn number(limit: usize) -> Value<'static> {
    i64::try_from(limit).unwrap_or(i64::MAX).into()
}

fn read(fault: TransactionFault) -> StoreError {
    fault.of_read()
}
