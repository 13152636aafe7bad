//! Reading the log.

use std::sync::LazyLock;

use hapax_core::{
    StoreError, Timestamp,
    outbox::{Lane, Look, Position, Seen, SeenRow, Stored, segment},
};
use tokio_postgres::types::ToSql;

use super::row::event;
use crate::{connection::SharedConnection, error::reading, row::column};

const LOOK: &str = include_str!("../sql/outbox_look.sql");
const REPLAYING: &str = include_str!("../sql/outbox_replaying.sql");

/// A gap lies in one segment or two, nearly always, and then only those are looked at.
static NARROW: LazyLock<String> = LazyLock::new(|| {
    let segments =
        "AND o.segment IN (((g.first >> 16) & 15)::smallint, ((g.last >> 16) & 15)::smallint)";
    LOOK.replace("{segments}", segments)
});
static WIDE: LazyLock<String> = LazyLock::new(|| LOOK.replace("{segments}", ""));

pub(super) async fn look(
    wire: &SharedConnection,
    destination: &str,
    look: &Look,
) -> Result<Option<Seen>, StoreError> {
    let narrow = look.gaps.iter().all(|(first, last)| segment(*last) - segment(*first) <= 1);
    let text: &'static str = if narrow { &NARROW } else { &WIDE };
    let (firsts, lasts) = columns(&look.gaps);
    let (late_firsts, late_lasts) = columns(&look.late);
    let lanes = &look.lanes[..];
    let limit = i64::try_from(look.limits.rows).unwrap_or(i64::MAX);
    let bytes = i64::try_from(look.limits.bytes.max(1)).unwrap_or(i64::MAX);
    let params: [&(dyn ToSql + Sync); 10] = [
        &destination,
        &look.after,
        &look.until,
        &firsts,
        &lasts,
        &late_firsts,
        &late_lasts,
        &lanes,
        &limit,
        &bytes,
    ];
    let found = wire.query(text, &params).await.map_err(reading)?;
    let Some(first) = found.first() else { return Ok(None) };
    let (now, replaying): (i64, bool) = (column(first, 0)?, column(first, 1)?);
    let total: Option<i64> = column(first, 2)?;
    let mut rows = Vec::with_capacity(found.len());
    for row in &found {
        let Some(position) = column(row, 3)? else { continue };
        let wanted = column::<bool>(row, 14)?;
        let event = if wanted { Some(event(row, 3)?) } else { None };
        rows.push(SeenRow { position, event, held: column(row, 15)? });
    }
    let total = usize::try_from(total.unwrap_or(0)).unwrap_or(usize::MAX);
    let complete = rows.len() == total && total < look.limits.rows;
    let replay = if replaying { replay(wire, destination, look).await? } else { Vec::new() };
    let now = Timestamp::from_micros(now);
    Ok(Some(Seen { now, session: wire.number(), rows, complete, replay }))
}

/// Parked events that are to be sent again. They are read after the log, so what the log shows as
/// held is not missed here, or nothing holds it any more.
async fn replay(
    wire: &SharedConnection,
    destination: &str,
    look: &Look,
) -> Result<Vec<Stored>, StoreError> {
    let leased = Lane::all().filter(|lane| look.lanes[lane.index()].is_some());
    let leased: Vec<i16> = leased.map(Lane::number).collect();
    let limit = i64::try_from(look.limits.rows).unwrap_or(i64::MAX);
    let bytes = i64::try_from(look.limits.bytes.max(1)).unwrap_or(i64::MAX);
    let rows = wire.query(REPLAYING, &[&destination, &leased, &limit, &bytes]).await;
    rows.map_err(reading)?.iter().map(|row| event(row, 0)).collect()
}

fn columns(ranges: &[(Position, Position)]) -> (Vec<Position>, Vec<Position>) {
    ranges.iter().copied().unzip()
}
