//! What was put aside.

use hapax_core::{
    StoreError, Timestamp,
    limits::PAGE_RECORDS_MAX,
    outbox::{Hold, Look, Park, Parked, ParkedPage, Parking, Position, Selection, Stored},
};
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    lanes,
    row::{event, event_columns},
};

/// Puts events of a lane aside; false if the lane is under another fence. The inner error says
/// that one of them cannot be read.
pub(super) fn park(
    connection: &Connection,
    now: Timestamp,
    park: &Park,
) -> rusqlite::Result<Result<bool, StoreError>> {
    if !lanes::is_under(connection, &park.destination, park.lane, park.fence)? {
        return Ok(Ok(false));
    }
    for parking in &park.events {
        park_one(connection, now, &park.destination, parking)?;
    }
    Ok(Ok(true))
}

fn park_one(
    connection: &Connection,
    now: Timestamp,
    destination: &str,
    parking: &Parking,
) -> rusqlite::Result<()> {
    let position = parking.position;
    let find = "SELECT topic, key FROM hapax_outbox_parked WHERE destination = ?1 AND position = ?2 \
                UNION ALL SELECT topic, key FROM hapax_outbox WHERE position = ?2 LIMIT 1";
    let names = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let mut find = connection.prepare_cached(find)?;
    let found = find.query_row(params![destination, position], names).optional()?;
    let Some((topic, key)): Option<(String, String)> = found else { return Ok(()) };
    let again = match parking.hold {
        Hold::Message => false,
        Hold::Tail => {
            let stop = "UPDATE hapax_outbox_parked SET replaying = 0 \
                        WHERE destination = ?1 AND topic = ?2 AND key = ?3 AND holds_key";
            connection.prepare_cached(stop)?.execute(params![destination, topic, key])?;
            false
        }
        Hold::Follow => holds(connection, destination, &topic, &key)?.unwrap_or(true),
    };
    let copy = "INSERT INTO hapax_outbox_parked (destination, position, at, id, format, topic, key, \
                content_type, headers, payload, holds_key, replaying, attempts, reason, parked_at) \
                SELECT ?1, position, at, id, format, topic, key, content_type, headers, payload, \
                0, 0, 0, '', 0 FROM hapax_outbox WHERE position = ?2 \
                ON CONFLICT (destination, position) DO NOTHING";
    connection.prepare_cached(copy)?.execute(params![destination, position])?;
    let mark = "UPDATE hapax_outbox_parked SET holds_key = ?3, replaying = ?4, attempts = ?5, \
                reason = ?6, parked_at = ?7 WHERE destination = ?1 AND position = ?2";
    connection.prepare_cached(mark)?.execute(params![
        destination,
        position,
        parking.hold != Hold::Message,
        again,
        parking.attempts,
        parking.reason(),
        now.as_micros(),
    ])?;
    Ok(())
}

/// Whether parked events hold this key, and if so, whether all of them are being sent again.
pub(super) fn holds(
    connection: &Connection,
    destination: &str,
    topic: &str,
    key: &str,
) -> rusqlite::Result<Option<bool>> {
    let text = "SELECT min(replaying) FROM hapax_outbox_parked \
                WHERE destination = ?1 AND topic = ?2 AND key = ?3 AND holds_key";
    connection.prepare_cached(text)?.query_row(params![destination, topic, key], |row| row.get(0))
}

/// Whether this very event is parked.
pub(super) fn is_parked(
    connection: &Connection,
    destination: &str,
    position: Position,
) -> rusqlite::Result<bool> {
    let text = "SELECT 1 FROM hapax_outbox_parked WHERE destination = ?1 AND position = ?2";
    connection.prepare_cached(text)?.exists(params![destination, position])
}

/// Parked events of the leased lanes that are to be sent again, up to the limits.
pub(super) fn replaying(
    connection: &Connection,
    destination: &str,
    look: &Look,
) -> rusqlite::Result<Result<Vec<Stored>, StoreError>> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        event_columns!(),
        " FROM hapax_outbox_parked WHERE destination = ?1 AND replaying ORDER BY position"
    ))?;
    let (mut replaying, mut bytes) = (Vec::new(), 0);
    let mut found = statement.query([destination])?;
    while replaying.len() < look.limits.rows
        && bytes < look.limits.bytes
        && let Some(row) = found.next()?
    {
        match event(row)? {
            Ok(event) if look.lanes[event.lane.index()].is_some() => {
                bytes += event.weight();
                replaying.push(event);
            }
            Ok(_) => {}
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(replaying))
}

pub(super) fn list(
    connection: &Connection,
    destination: &str,
    selection: &Selection,
    page: ParkedPage,
) -> rusqlite::Result<Result<Vec<Parked>, StoreError>> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        event_columns!(),
        ", holds_key, replaying, attempts, reason, parked_at FROM hapax_outbox_parked \
         WHERE destination = ?1 AND (?2 IS NULL OR topic = ?2) AND (?3 IS NULL OR key = ?3) \
         AND (?4 IS NULL OR position = ?4) AND position > ?5 ORDER BY position LIMIT ?6"
    ))?;
    let limit = i64::try_from(page.limit.min(PAGE_RECORDS_MAX)).unwrap_or(0);
    let (topic, key, one) = columns(selection);
    let rows =
        statement.query_map(params![destination, topic, key, one, page.after, limit], |row| {
            let event = match event(row)? {
                Ok(event) => event,
                Err(error) => return Ok(Err(error)),
            };
            Ok(Ok(Parked {
                event,
                holds_key: row.get(9)?,
                replaying: row.get(10)?,
                attempts: row.get(11)?,
                reason: row.get(12)?,
                parked_at: Timestamp::from_micros(row.get(13)?),
            }))
        })?;
    let rows: Vec<_> = rows.collect::<rusqlite::Result<_>>()?;
    Ok(rows.into_iter().collect())
}

/// Has parked events sent again; of a key that is held, one comes with those before it.
pub(super) fn replay(
    connection: &Connection,
    destination: &str,
    selection: &Selection,
) -> rusqlite::Result<usize> {
    let (topic, key, one) = columns(selection);
    let text = "UPDATE hapax_outbox_parked AS p SET replaying = 1 \
                WHERE destination = ?1 AND NOT replaying \
                AND (?2 IS NULL OR topic = ?2) AND (?3 IS NULL OR key = ?3) \
                AND (?4 IS NULL OR position = ?4 OR (holds_key AND position < ?4 AND EXISTS ( \
                SELECT 1 FROM hapax_outbox_parked AS q WHERE q.destination = ?1 AND q.position = ?4 \
                AND q.holds_key AND q.topic = p.topic AND q.key = p.key)))";
    connection.prepare_cached(text)?.execute(params![destination, topic, key, one])
}

pub(super) fn forget(
    connection: &Connection,
    destination: &str,
    selection: &Selection,
) -> rusqlite::Result<usize> {
    let (topic, key, one) = columns(selection);
    let text = "DELETE FROM hapax_outbox_parked WHERE destination = ?1 \
                AND (?2 IS NULL OR topic = ?2) AND (?3 IS NULL OR key = ?3) \
                AND (?4 IS NULL OR position = ?4)";
    connection.prepare_cached(text)?.execute(params![destination, topic, key, one])
}

/// Topic, key and position; what is NULL does not matter.
fn columns(selection: &Selection) -> (Option<&str>, Option<&str>, Option<Position>) {
    match selection {
        Selection::All => (None, None, None),
        Selection::Key { topic, key } => (Some(topic), Some(key), None),
        Selection::One(position) => (None, None, Some(*position)),
    }
}
