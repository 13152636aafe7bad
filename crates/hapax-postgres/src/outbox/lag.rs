//! How far a destination is behind.

use hapax_core::{
    Owner, StoreError, Timestamp,
    outbox::{Lag, LaneLag},
};
use tokio_postgres::Row;

use super::stored_lane;
use crate::{connection::SharedConnection, error::reading, row::column};

const LAG: &str = include_str!("../sql/outbox_lag.sql");

pub(super) async fn lag(
    wire: &SharedConnection,
    destination: &str,
) -> Result<Option<Lag>, StoreError> {
    let rows = wire.query(LAG, &[&destination]).await.map_err(reading)?;
    let Some(first) = rows.first() else { return Ok(None) };
    let (now, paused) = (Timestamp::from_micros(column(first, 0)?), column(first, 1)?);
    let (relays, parked): (i64, i64) = (column(first, 2)?, column(first, 3)?);
    Ok(Some(Lag {
        now,
        paused,
        relays: usize::try_from(relays).unwrap_or(0),
        parked: u64::try_from(parked).unwrap_or(0),
        lanes: rows.iter().map(lane).collect::<Result<_, _>>()?,
    }))
}

fn lane(row: &Row) -> Result<LaneLag, StoreError> {
    Ok(LaneLag {
        lane: stored_lane(column(row, 4)?)?,
        owner: column::<Option<i64>>(row, 5)?.map(Owner),
        low: column(row, 6)?,
        events: u64::try_from(column::<i64>(row, 7)?).unwrap_or(0),
        oldest: column::<Option<i64>>(row, 8)?.map(Timestamp::from_micros),
    })
}
