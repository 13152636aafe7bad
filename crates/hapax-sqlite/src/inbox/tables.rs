//! What is written outside of a handler's transaction, each in a statement of its own.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_core::{
    Fence, Key, Scope, StoreError, Timestamp, TransactionError,
    clock::{ClockMark, ClockReading},
    inbox::{
        Identity, Letter, Message, Partition, RegisteredConsumer, Taken, Waiting, decode_headers,
    },
    time::micros,
};

use super::{
    cell::Cells,
    sql_session::SqlSession,
    unit::{BURY, letter, one},
};
use crate::clock_mark;

const ENLIST: &str = "INSERT INTO hapax_inbox_consumers (name, retention) VALUES (?1, ?2) \
     ON CONFLICT (name) DO UPDATE SET retention = excluded.retention RETURNING number";
const MISSED: &str = "INSERT INTO hapax_inbox_attempts (consumer, message_id, attempts, changed_at) \
     VALUES (?1, ?2, 1, ?3) \
     ON CONFLICT DO UPDATE SET attempts = attempts + 1, changed_at = excluded.changed_at \
     RETURNING attempts";
const TAKE: &str = "INSERT INTO hapax_inbox_offsets (consumer, source, partition, fence) \
     VALUES (?1, ?2, ?3, 1) ON CONFLICT DO UPDATE SET fence = fence + 1 RETURNING fence, next";
const WAITING: &str = "SELECT h.message_id, h.business_id, h.source, h.key, h.version, h.headers, h.payload \
     FROM hapax_inbox_held AS h \
     LEFT JOIN hapax_inbox_versions AS v ON v.consumer = h.consumer AND v.key = h.key \
     WHERE h.consumer = ?1 AND (?2 IS NULL OR h.key = ?2) \
       AND (h.version <= coalesce(v.version + 1, ?3) OR h.held_at <= ?4) \
       AND NOT EXISTS (SELECT 1 FROM hapax_inbox_held AS l \
                       WHERE l.consumer = h.consumer AND l.key = h.key AND l.version < h.version) \
     ORDER BY h.held_at LIMIT ?5";
/// Takes the instant and the most to remove.
pub(crate) const FORGET: &str = "DELETE FROM hapax_inbox WHERE (consumer, message_id) IN \
     (SELECT i.consumer, i.message_id FROM hapax_inbox_consumers AS c \
      JOIN hapax_inbox AS i ON i.consumer = c.number AND i.received_at <= ?1 - c.retention \
      WHERE i.state <> 3 LIMIT ?2) RETURNING 1";
/// The same for failed attempts.
pub(crate) const FORGET_ATTEMPTS: &str = "DELETE FROM hapax_inbox_attempts WHERE (consumer, message_id) IN \
     (SELECT a.consumer, a.message_id FROM hapax_inbox_consumers AS c \
      JOIN hapax_inbox_attempts AS a ON a.consumer = c.number AND a.changed_at <= ?1 - c.retention \
      LIMIT ?2) RETURNING 1";

pub(crate) async fn enlist(
    desk: &mut impl SqlSession,
    name: &Scope,
    retention: Duration,
) -> Result<RegisteredConsumer, StoreError> {
    let values = [name.as_str().into(), micros(retention).into()];
    let rows = desk.ask(ENLIST, &values).await.map_err(written)?;
    let number = i32::try_from(one(&rows)?.number(0)?).map_err(StoreError::damaged)?;
    Ok(RegisteredConsumer { number, name: name.clone(), retention })
}

pub(crate) async fn missed(
    desk: &mut impl SqlSession,
    now: Timestamp,
    consumer: &RegisteredConsumer,
    id: &Key,
) -> Result<u32, StoreError> {
    let values = [consumer.number.into(), id.as_str().into(), now.as_micros().into()];
    let rows = desk.ask(MISSED, &values).await.map_err(written)?;
    Ok(u32::try_from(one(&rows)?.number(0)?).unwrap_or(u32::MAX))
}

pub(crate) async fn bury(
    desk: &mut impl SqlSession,
    now: Timestamp,
    consumer: &RegisteredConsumer,
    dead: &Letter,
) -> Result<(), StoreError> {
    let values = letter(now, consumer.number, &dead.message, &dead.reason);
    desk.ask(BURY, &values).await.map(|_| ()).map_err(written)
}

pub(crate) async fn take(
    desk: &mut impl SqlSession,
    consumer: &RegisteredConsumer,
    partition: &Partition,
) -> Result<Taken, StoreError> {
    let values = [consumer.number.into(), (&*partition.source).into(), partition.number.into()];
    let rows = desk.ask(TAKE, &values).await.map_err(written)?;
    let row = one(&rows)?;
    let fence = Fence::from_stored(row.number(0)?);
    let fence = fence.ok_or_else(|| StoreError::damaged("a fence below one"))?;
    Ok(Taken { fence, next: row.maybe_number(1)? })
}

pub(crate) async fn waiting(
    desk: &mut impl SqlSession,
    now: Timestamp,
    consumer: &RegisteredConsumer,
    waiting: &Waiting,
) -> Result<Vec<Arc<Message>>, StoreError> {
    let now = clock_mark::ask(desk, now).await.map_err(written)?.trusted();
    let values = [
        consumer.number.into(),
        waiting.key.as_deref().into(),
        waiting.first.into(),
        now.minus(waiting.patience).as_micros().into(),
        i64::try_from(waiting.limit).unwrap_or(i64::MAX).into(),
    ];
    let rows = desk.ask(WAITING, &values).await.map_err(written)?;
    rows.iter().map(held).collect()
}

pub(crate) async fn forget(
    desk: &mut impl SqlSession,
    now: Timestamp,
    limit: usize,
) -> Result<usize, StoreError> {
    let now = clock_mark::ask(desk, now).await.map_err(written)?.trusted();
    let mut gone = 0;
    for text in [FORGET, FORGET_ATTEMPTS] {
        let most = i64::try_from(limit - gone).unwrap_or(i64::MAX);
        gone +=
            desk.ask(text, &[now.as_micros().into(), most.into()]).await.map_err(written)?.len();
    }
    Ok(gone)
}

pub(crate) async fn clock(
    desk: &mut impl SqlSession,
    now: Timestamp,
) -> Result<ClockReading, StoreError> {
    clock_mark::ask(desk, now).await.map_err(written)
}

pub(crate) async fn keep_clock(
    desk: &mut impl SqlSession,
    mark: ClockMark,
) -> Result<(), StoreError> {
    clock_mark::tell(desk, mark).await.map_err(written)
}

/// A held message, as [`WAITING`] shows it.
fn held(row: &Cells) -> Result<Arc<Message>, StoreError> {
    let business = row.number(1)? == 1;
    let unreadable = || StoreError::damaged("headers of a held message are unreadable");
    Ok(Arc::new(Message {
        id: Key::parse(row.text(0)?).map_err(StoreError::damaged)?,
        identity: if business { Identity::Business } else { Identity::Broker },
        source: row.text(2)?,
        key: row.maybe_text(3)?,
        version: row.maybe_number(4)?,
        headers: decode_headers(&row.bytes(5)?).ok_or_else(unreadable)?,
        payload: Bytes::from(row.bytes(6)?),
        place: None,
    }))
}

/// A statement is its own transaction here, and SQLite says whether it was committed.
fn written(error: TransactionError) -> StoreError {
    match error {
        TransactionError::Conflict(cause) | TransactionError::Taken(cause) => {
            StoreError::Unavailable(cause)
        }
        TransactionError::Store(error) => error,
    }
}
