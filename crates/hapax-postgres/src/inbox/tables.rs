//! What is written outside of a handler's transaction, each in a statement of its own.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_core::{
    Fence, Key, Scope, StoreError, TransactionError,
    clock::{ClockMark, ClockReading},
    inbox::{
        Identity, Letter, Message, Partition, RegisteredConsumer, Taken, Waiting, decode_headers,
    },
    time::micros,
};

use super::{
    cell::{Cell, Cells},
    sql_session::SqlSession,
    unit::{BURY, letter, one},
};
use crate::{clock_mark, transaction::error::TransactionFault};

/// Waits five seconds for whoever makes the same consumer known.
const ENLIST: &str =
    "SELECT hapax.inbox_consumer('messages', $1::text, $2::int8, true, 5000000)::int8";
const MISSED: &str = include_str!("../sql/inbox_missed.sql");
const TAKE: &str = include_str!("../sql/inbox_take.sql");
const WAITING: &str = include_str!("../sql/inbox_waiting.sql");
const FORGET: &str = "SELECT hapax.inbox_forget($1::int8)";

pub(crate) async fn enlist(
    session: &mut impl SqlSession,
    name: &Scope,
    retention: Duration,
) -> Result<RegisteredConsumer, StoreError> {
    let values = [name.as_str().into(), micros(retention).into()];
    let rows = session.ask(ENLIST, &values).await.map_err(written)?;
    let number = one(&rows).and_then(|row| row.maybe_number(0)).map_err(written)?;
    let busy = || StoreError::unavailable("another transaction is making the consumer known");
    let number = i32::try_from(number.ok_or_else(busy)?).map_err(StoreError::damaged)?;
    Ok(RegisteredConsumer { number, name: name.clone(), retention })
}

pub(crate) async fn missed(
    session: &mut impl SqlSession,
    consumer: &RegisteredConsumer,
    id: &Key,
) -> Result<u32, StoreError> {
    let rows = session.ask(MISSED, &[consumer.number.into(), id.as_str().into()]).await;
    let rows = rows.map_err(written)?;
    let attempts = one(&rows).and_then(|row| row.number(0)).map_err(written)?;
    Ok(u32::try_from(attempts).unwrap_or(u32::MAX))
}

pub(crate) async fn bury(
    session: &mut impl SqlSession,
    consumer: &RegisteredConsumer,
    dead: &Letter,
) -> Result<(), StoreError> {
    let values = letter(consumer.number, &dead.message, &dead.reason);
    session.ask(BURY, &values).await.map(|_| ()).map_err(written)
}

pub(crate) async fn take(
    session: &mut impl SqlSession,
    consumer: &RegisteredConsumer,
    partition: &Partition,
) -> Result<Taken, StoreError> {
    let number = i64::from(partition.number);
    let values = [consumer.number.into(), (&*partition.source).into(), number.into()];
    let rows = session.ask(TAKE, &values).await.map_err(written)?;
    let row = one(&rows).map_err(written)?;
    let fence = row.number(0).map_err(written)?;
    let fence =
        Fence::from_stored(fence).ok_or_else(|| StoreError::damaged("a fence below one"))?;
    Ok(Taken { fence, next: row.maybe_number(1).map_err(written)? })
}

pub(crate) async fn waiting(
    session: &mut impl SqlSession,
    consumer: &RegisteredConsumer,
    waiting: &Waiting,
) -> Result<Vec<Arc<Message>>, StoreError> {
    let values = [
        consumer.number.into(),
        Cell::Text(waiting.key.clone()),
        waiting.first.into(),
        micros(waiting.patience).into(),
        i64::try_from(waiting.limit).unwrap_or(i64::MAX).into(),
    ];
    let rows = session.ask(WAITING, &values).await.map_err(written)?;
    rows.iter().map(held).collect()
}

pub(crate) async fn forget(
    session: &mut impl SqlSession,
    limit: usize,
) -> Result<usize, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = session.ask(FORGET, &[limit.into()]).await.map_err(written)?;
    let gone = one(&rows).and_then(|row| row.number(0)).map_err(written)?;
    Ok(usize::try_from(gone).unwrap_or(usize::MAX))
}

pub(crate) async fn clock(session: &mut impl SqlSession) -> Result<ClockReading, StoreError> {
    let rows = session.ask(clock_mark::READ, &[]).await.map_err(written)?;
    let row = one(&rows).map_err(written)?;
    let kept = |at| row.maybe_number(at).map_err(written);
    let now = row.number(0).map_err(written)?;
    Ok(clock_mark::reading_of(now, [kept(1)?, kept(2)?, kept(3)?]))
}

pub(crate) async fn keep_clock(
    session: &mut impl SqlSession,
    mark: ClockMark,
) -> Result<(), StoreError> {
    let values = clock_mark::columns(mark).map(Cell::from);
    session.ask(clock_mark::KEEP, &values).await.map(|_| ()).map_err(written)
}

/// A held message, as `inbox_waiting.sql` shows it.
fn held(row: &Cells) -> Result<Arc<Message>, StoreError> {
    let id = Key::parse(row.text(0).map_err(written)?).map_err(StoreError::damaged)?;
    let business = row.number(1).map_err(written)? == 1;
    let identity = if business { Identity::Business } else { Identity::Broker };
    let headers = decode_headers(&row.bytes(5).map_err(written)?);
    let unreadable = || StoreError::damaged("headers of a held message are unreadable");
    Ok(Arc::new(Message {
        id,
        identity,
        source: row.text(2).map_err(written)?,
        key: row.maybe_text(3).map_err(written)?,
        version: row.maybe_number(4).map_err(written)?,
        headers: headers.ok_or_else(unreadable)?,
        payload: Bytes::from(row.bytes(6).map_err(written)?),
        place: None,
    }))
}

/// A statement is its own transaction here: without an answer it may have been committed.
fn written(fault: TransactionFault) -> StoreError {
    match fault.of_commit() {
        TransactionError::Conflict(cause) | TransactionError::Taken(cause) => {
            StoreError::Unavailable(cause)
        }
        TransactionError::Store(error) => error,
    }
}
