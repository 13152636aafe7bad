//! What is written outside of a handler's transaction, each in a statement of its own.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use hapax_core::{
    Fence, Key, Scope, StoreError, Timestamp,
    clock::{ClockMark, ClockReading},
    inbox::{
        Identity, Letter, Message, Partition, RegisteredConsumer, Taken, Waiting, decode_headers,
    },
    time::micros,
};

use super::{
    InboxContext,
    unit::one,
    values::{self, stamped},
};
use crate::{ResultRow, Session, TransactionFault, Value, clock_mark};

/// Makes a consumer known.
pub async fn enlist(
    session: &mut impl Session,
    InboxContext { statements, .. }: InboxContext,
    name: &Scope,
    retention: Duration,
) -> Result<RegisteredConsumer, StoreError> {
    let values = [name.as_str().into(), micros(retention).into()];
    let rows = session.ask(statements.enlist, &values).await.map_err(written)?;
    let number = one(&rows).and_then(|row| row.maybe_number(0)).map_err(written)?;
    let busy = || StoreError::unavailable("another transaction is making the consumer known");
    let number = i32::try_from(number.ok_or_else(busy)?).map_err(StoreError::damaged)?;
    Ok(RegisteredConsumer { number, name: name.clone(), retention })
}

/// Counts a failed attempt; how many there were.
pub async fn missed(
    session: &mut impl Session,
    InboxContext { statements, now, .. }: InboxContext,
    consumer: &RegisteredConsumer,
    id: &Key,
) -> Result<u32, StoreError> {
    let values = stamped([consumer.number.into(), id.as_str().into()], now);
    let rows = session.ask(statements.missed, &values).await.map_err(written)?;
    let attempts = one(&rows).and_then(|row| row.number(0)).map_err(written)?;
    Ok(u32::try_from(attempts).unwrap_or(u32::MAX))
}

/// Keeps a dead letter.
pub async fn bury(
    session: &mut impl Session,
    InboxContext { statements, now, .. }: InboxContext,
    consumer: &RegisteredConsumer,
    letter: &Letter,
) -> Result<(), StoreError> {
    let (digest, headers) = (letter.kept.message().digest(), letter.kept.stored_headers());
    let values = values::letter(consumer.number, letter, &digest, &headers);
    session.ask(statements.bury, &stamped(values, now)).await.map(|_| ()).map_err(written)
}

/// Takes a partition.
pub async fn take(
    session: &mut impl Session,
    InboxContext { statements, .. }: InboxContext,
    consumer: &RegisteredConsumer,
    partition: &Partition,
) -> Result<Taken, StoreError> {
    let values = [consumer.number.into(), (&*partition.source).into(), partition.number.into()];
    let rows = session.ask(statements.take, &values).await.map_err(written)?;
    let row = one(&rows).map_err(written)?;
    let fence = Fence::from_stored(row.number(0).map_err(written)?);
    let fence = fence.ok_or_else(|| StoreError::damaged("a fence below one"))?;
    Ok(Taken { fence, next: row.maybe_number(1).map_err(written)? })
}

/// Held messages that have their turn, or have waited for too long.
pub async fn waiting(
    session: &mut impl Session,
    InboxContext { statements, now, .. }: InboxContext,
    consumer: &RegisteredConsumer,
    waiting: &Waiting,
) -> Result<Vec<Arc<Message>>, StoreError> {
    let values: [Value<'_>; 5] = [
        consumer.number.into(),
        waiting.key.as_deref().into(),
        waiting.first.into(),
        micros(waiting.patience).into(),
        i64::try_from(waiting.limit).unwrap_or(i64::MAX).into(),
    ];
    let rows = session.ask(statements.waiting, &stamped(values, now)).await.map_err(read)?;
    rows.iter().map(held).collect()
}

/// Forgets what is past its retention; how many that were.
pub async fn forget(
    session: &mut impl Session,
    InboxContext { statements, now, .. }: InboxContext,
    limit: usize,
) -> Result<usize, StoreError> {
    let mut gone = 0;
    for text in statements.forget {
        let most = i64::try_from(limit.saturating_sub(gone)).unwrap_or(i64::MAX);
        let rows = session.ask(text, &stamped([most.into()], now)).await.map_err(written)?;
        for row in &rows {
            gone += usize::try_from(row.number(0).map_err(written)?).unwrap_or_default();
        }
    }
    Ok(gone)
}

/// What the clock says, and what was kept of it.
pub async fn clock(
    session: &mut impl Session,
    InboxContext { statements, now, .. }: InboxContext,
) -> Result<ClockReading, StoreError> {
    let rows = session.ask(statements.clock, &[]).await.map_err(read)?;
    let row = one(&rows).map_err(read)?;
    let (now, kept_at) = match now {
        Some(now) => (now, 0),
        None => (Timestamp::from_micros(row.number(0).map_err(read)?), 1),
    };
    Ok(ClockReading { now, mark: clock_mark(row, kept_at).map_err(read)? })
}

/// Keeps this of the clock.
pub async fn keep_clock(
    session: &mut impl Session,
    InboxContext { statements, .. }: InboxContext,
    mark: ClockMark,
) -> Result<(), StoreError> {
    let ClockMark { steady_since, seen_at, trusted_until } = mark;
    let values = [steady_since, seen_at, trusted_until].map(|at| Value::from(at.as_micros()));
    session.ask(statements.keep_clock, &values).await.map(|_| ()).map_err(written)
}

fn held(row: &impl ResultRow) -> Result<Arc<Message>, StoreError> {
    let business = row.flag(1).map_err(read)?;
    let headers = decode_headers(row.bytes(5).map_err(read)?);
    let unreadable = || StoreError::damaged("headers of a held message are unreadable");
    Ok(Arc::new(Message {
        id: Key::parse(row.text(0).map_err(read)?).map_err(StoreError::damaged)?,
        identity: if business { Identity::Business } else { Identity::Broker },
        source: row.text(2).map_err(read)?.to_owned(),
        key: row.maybe_text(3).map_err(read)?.map(str::to_owned),
        version: row.maybe_number(4).map_err(read)?,
        headers: headers.ok_or_else(unreadable)?,
        payload: Bytes::copy_from_slice(row.bytes(6).map_err(read)?),
        place: None,
    }))
}

fn written(fault: TransactionFault) -> StoreError {
    fault.of_statement()
}

fn read(fault: TransactionFault) -> StoreError {
    fault.of_read()
}
