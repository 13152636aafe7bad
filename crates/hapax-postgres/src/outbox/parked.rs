//! What was put aside.

use hapax_core::{
    StoreError, Timestamp,
    limits::PAGE_RECORDS_MAX,
    outbox::{Hold, Park, Parked, ParkedPage, Position, Selection},
};

use super::{first, row::event};
use crate::{
    connection::SharedConnection,
    error::{StatementFailure, reading},
    row::column,
};

const PARK: &str = "SELECT hapax.outbox_park($1, $2, $3, $4, $5, $6, $7)";
const REPLAY: &str = "SELECT hapax.outbox_replay($1, $2, $3, $4)";
const LIST: &str = include_str!("../sql/outbox_parked.sql");
const FORGET: &str = include_str!("../sql/outbox_forget.sql");

pub(super) async fn park(wire: &SharedConnection, park: &Park) -> Result<bool, StatementFailure> {
    let events = &park.events;
    let positions: Vec<_> = events.iter().map(|parking| parking.position).collect();
    let holds: Vec<_> = events.iter().map(|parking| hold(parking.hold)).collect();
    let attempts = events.iter().map(|parking| i32::try_from(parking.attempts).unwrap_or(i32::MAX));
    let attempts: Vec<_> = attempts.collect();
    let reasons: Vec<_> = events.iter().map(|parking| parking.reason()).collect();
    let (lane, fence) = (park.lane.number(), park.fence.get());
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
        [&park.destination, &lane, &fence, &positions, &holds, &attempts, &reasons];
    column(first(&wire.query(PARK, &params).await?)?, 0)
}

pub(super) async fn list(
    wire: &SharedConnection,
    destination: &str,
    selection: &Selection,
    page: ParkedPage,
) -> Result<Vec<Parked>, StoreError> {
    let (topic, key, one) = columns(selection);
    let limit = i64::try_from(page.limit.min(PAGE_RECORDS_MAX)).unwrap_or(0);
    let rows = wire.query(LIST, &[&destination, &topic, &key, &one, &page.after, &limit]).await;
    let read = |row| {
        Ok(Parked {
            event: event(row, 0)?,
            holds_key: column(row, 11)?,
            replaying: column(row, 12)?,
            attempts: u32::try_from(column::<i32>(row, 13)?).unwrap_or(0),
            reason: column(row, 14)?,
            parked_at: Timestamp::from_micros(column(row, 15)?),
        })
    };
    rows.map_err(reading)?.iter().map(read).collect()
}

pub(super) async fn replay(
    wire: &SharedConnection,
    destination: &str,
    selection: &Selection,
) -> Result<usize, StatementFailure> {
    let (topic, key, one) = columns(selection);
    let rows = wire.query(REPLAY, &[&destination, &topic, &key, &one]).await?;
    Ok(usize::try_from(column::<i64>(first(&rows)?, 0)?).unwrap_or(0))
}

pub(super) async fn forget(
    wire: &SharedConnection,
    destination: &str,
    selection: &Selection,
) -> Result<usize, StatementFailure> {
    let (topic, key, one) = columns(selection);
    Ok(wire.query(FORGET, &[&destination, &topic, &key, &one]).await?.len())
}

/// Topic, key and position; what is NULL does not matter.
fn columns(selection: &Selection) -> (Option<&str>, Option<&str>, Option<Position>) {
    match selection {
        Selection::All => (None, None, None),
        Selection::Key { topic, key } => (Some(topic), Some(key), None),
        Selection::One(position) => (None, None, Some(*position)),
    }
}

/// As `hapax.outbox_park` counts them.
fn hold(hold: Hold) -> i16 {
    match hold {
        Hold::Message => 1,
        Hold::Tail => 2,
        Hold::Follow => 3,
    }
}
