//! Who wants what, how far behind it is, and what nobody needs any more.

use hapax_core::{
    StoreError, Timestamp,
    limits::PAGE_RECORDS_MAX,
    outbox::{Destination, Lag, Lane, LaneLag, Registered, Retired, Start, Topics},
};
use rusqlite::{Connection, OptionalExtension, params};

use super::lanes;

pub(super) fn register(
    connection: &Connection,
    destination: &Destination,
    start: Start,
) -> rusqlite::Result<()> {
    let topics = serde_json::Value::from(destination.topics().patterns()).to_string();
    let text = "INSERT INTO hapax_outbox_destinations (name, topics, paused) VALUES (?1, ?2, 0) \
                ON CONFLICT (name) DO UPDATE SET topics = excluded.topics";
    connection.execute(text, params![destination.name(), topics])?;
    let low: i64 = match start {
        Start::Beginning => 0,
        Start::Now => {
            let last =
                "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'hapax_outbox'";
            connection.query_row(last, [], |row| row.get(0))?
        }
    };
    let text = "INSERT INTO hapax_outbox_lanes (destination, lane, owner, fence, low) \
                VALUES (?1, ?2, NULL, 0, ?3) ON CONFLICT (destination, lane) DO NOTHING";
    for lane in Lane::all() {
        connection.prepare_cached(text)?.execute(params![
            destination.name(),
            lane.number(),
            low
        ])?;
    }
    Ok(())
}

pub(super) fn remove(connection: &Connection, name: &str) -> rusqlite::Result<bool> {
    for text in [
        "DELETE FROM hapax_outbox_lanes WHERE destination = ?1",
        "DELETE FROM hapax_outbox_relays WHERE destination = ?1",
        "DELETE FROM hapax_outbox_parked WHERE destination = ?1",
    ] {
        connection.execute(text, [name])?;
    }
    let gone =
        connection.execute("DELETE FROM hapax_outbox_destinations WHERE name = ?1", [name])?;
    Ok(gone == 1)
}

pub(super) fn list(
    connection: &Connection,
) -> rusqlite::Result<Result<Vec<Registered>, StoreError>> {
    let text = "SELECT name, topics, paused FROM hapax_outbox_destinations ORDER BY name";
    let mut statement = connection.prepare_cached(text)?;
    let rows = statement.query_map([], |row| {
        let (name, topics): (String, String) = (row.get(0)?, row.get(1)?);
        let destination = parse(&topics)
            .and_then(|topics| Destination::new(name, topics).map_err(StoreError::damaged));
        let paused = row.get(2)?;
        Ok(destination.map(|destination| Registered { destination, paused }))
    })?;
    let rows: Vec<_> = rows.collect::<rusqlite::Result<_>>()?;
    Ok(rows.into_iter().collect())
}

pub(super) fn set_paused(
    connection: &Connection,
    name: &str,
    paused: bool,
) -> rusqlite::Result<bool> {
    let text = "UPDATE hapax_outbox_destinations SET paused = ?2 WHERE name = ?1";
    Ok(connection.execute(text, params![name, paused])? == 1)
}

/// What a destination wants; `None` if there is no such one.
pub(super) fn topics(
    connection: &Connection,
    name: &str,
) -> rusqlite::Result<Option<Result<Topics, StoreError>>> {
    let text = "SELECT topics FROM hapax_outbox_destinations WHERE name = ?1";
    let mut statement = connection.prepare_cached(text)?;
    let found: Option<String> = statement.query_row([name], |row| row.get(0)).optional()?;
    Ok(found.map(|topics| parse(&topics)))
}

fn parse(topics: &str) -> Result<Topics, StoreError> {
    let patterns: Vec<String> = serde_json::from_str(topics).map_err(StoreError::damaged)?;
    Topics::parse(patterns).map_err(StoreError::damaged)
}

pub(super) fn lag(
    connection: &Connection,
    now: Timestamp,
    name: &str,
) -> rusqlite::Result<Result<Option<Lag>, StoreError>> {
    let wanted = match topics(connection, name)? {
        Some(Ok(topics)) => topics,
        Some(Err(error)) => return Ok(Err(error)),
        None => return Ok(Ok(None)),
    };
    let mut relays = lanes::relays(connection, name)?;
    relays.retain(|relay| relay.until > now);
    let rows = lanes::lanes(connection, name)?;
    let mut behind: Vec<_> = rows
        .iter()
        .map(|row| LaneLag {
            lane: row.lane,
            owner: row.owner.filter(|owner| relays.iter().any(|relay| relay.owner == *owner)),
            low: row.low,
            events: 0,
            oldest: None,
        })
        .collect();
    let lowest = rows.iter().map(|row| row.low).min().unwrap_or(0);
    let text = "SELECT position, topic, key, at FROM hapax_outbox WHERE position > ?1";
    let mut statement = connection.prepare_cached(text)?;
    let mut found = statement.query([lowest])?;
    while let Some(row) = found.next()? {
        let (topic, key) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
        let lane = Lane::of(topic, key);
        let position: i64 = row.get(0)?;
        if let Some(lag) = behind.iter_mut().find(|lag| lag.lane == lane)
            && position > lag.low
            && wanted.wants(topic)
        {
            let at = Timestamp::from_micros(row.get(3)?);
            lag.events += 1;
            lag.oldest = Some(lag.oldest.map_or(at, |oldest| oldest.min(at)));
        }
    }
    let count = |text| connection.query_row(text, [name], |row| row.get::<_, i64>(0));
    let parked = count("SELECT count(*) FROM hapax_outbox_parked WHERE destination = ?1")?;
    let paused = count("SELECT paused FROM hapax_outbox_destinations WHERE name = ?1")?;
    Ok(Ok(Some(Lag {
        now,
        paused: paused != 0,
        relays: relays.len(),
        parked: u64::try_from(parked).unwrap_or(0),
        lanes: behind,
    })))
}

/// Deletes the oldest events that are final for every destination.
pub(super) fn retire(connection: &Connection, limit: usize) -> rusqlite::Result<Retired> {
    let text = "DELETE FROM hapax_outbox WHERE position IN (SELECT position FROM hapax_outbox \
                WHERE position <= (SELECT min(low) FROM hapax_outbox_lanes) ORDER BY position LIMIT ?1)";
    let limit = i64::try_from(limit.min(PAGE_RECORDS_MAX)).unwrap_or(0);
    let events = connection.prepare_cached(text)?.execute([limit])?;
    Ok(Retired { events: u64::try_from(events).unwrap_or(0) })
}
