//! Who sends which lane, and how far it is.

use hapax_core::{
    Fence, Owner, StoreError, Timestamp,
    outbox::{Lane, LaneProgress, Leased, Leases, RelayLease, ServingRelay, plan},
};
use rusqlite::{Connection, OptionalExtension, params};

/// Keeps a relay alive, and takes what is free.
pub(super) fn lease(
    connection: &Connection,
    now: Timestamp,
    lease: &RelayLease,
) -> rusqlite::Result<Result<Option<Leases>, StoreError>> {
    let (name, me, until) = (&lease.destination, lease.owner, now.plus(lease.span));
    let text = "SELECT paused FROM hapax_outbox_destinations WHERE name = ?1";
    let paused = connection.prepare_cached(text)?.query_row([name], |row| row.get(0)).optional()?;
    let Some(paused) = paused else { return Ok(Ok(None)) };
    let relays = relays(connection, name)?;
    let renew = "INSERT INTO hapax_outbox_relays (destination, owner, until) VALUES (?1, ?2, ?3) \
                 ON CONFLICT (destination, owner) DO UPDATE SET until = excluded.until";
    connection.prepare_cached(renew)?.execute(params![name, me.0, until.as_micros()])?;
    let owners: Vec<_> = lanes(connection, name)?.iter().map(|row| (row.lane, row.owner)).collect();
    let plan = plan(now, me, &relays, &owners);
    let take = "UPDATE hapax_outbox_lanes SET owner = ?3, fence = fence + 1 \
                WHERE destination = ?1 AND lane = ?2";
    for lane in plan.take {
        connection.prepare_cached(take)?.execute(params![name, lane.number(), me.0])?;
    }
    let mut leased = Vec::new();
    for row in lanes(connection, name)?.into_iter().filter(|row| row.owner == Some(me)) {
        let Some(fence) = Fence::from_stored(row.fence) else {
            return Ok(Err(StoreError::damaged("a leased lane has no fence")));
        };
        leased.push(Leased { lane: row.lane, fence, low: row.low });
    }
    let give_back = plan.give_back;
    Ok(Ok(Some(Leases { now, until, paused, lanes: leased, give_back })))
}

/// A lane as it is stored.
pub(super) struct StoredLane {
    pub(super) lane: Lane,
    pub(super) owner: Option<Owner>,
    pub(super) fence: i64,
    pub(super) low: i64,
}

/// The lanes of a destination, in order.
pub(super) fn lanes(
    connection: &Connection,
    destination: &str,
) -> rusqlite::Result<Vec<StoredLane>> {
    let text = "SELECT lane, owner, fence, low FROM hapax_outbox_lanes WHERE destination = ?1 \
                ORDER BY lane";
    let mut statement = connection.prepare_cached(text)?;
    let rows = statement.query_map([destination], |row| {
        let number = row.get(0)?;
        let lane = Lane::from_number(number);
        let owner: Option<i64> = row.get(1)?;
        Ok(StoredLane {
            lane: lane.ok_or(rusqlite::Error::IntegralValueOutOfRange(0, number.into()))?,
            owner: owner.map(Owner),
            fence: row.get(2)?,
            low: row.get(3)?,
        })
    })?;
    rows.collect()
}

/// The relays of a destination, dead ones included.
pub(super) fn relays(
    connection: &Connection,
    destination: &str,
) -> rusqlite::Result<Vec<ServingRelay>> {
    let text = "SELECT owner, until FROM hapax_outbox_relays WHERE destination = ?1";
    let mut statement = connection.prepare_cached(text)?;
    let rows = statement.query_map([destination], |row| {
        let until = Timestamp::from_micros(row.get(1)?);
        Ok(ServingRelay { owner: Owner(row.get(0)?), until })
    })?;
    rows.collect()
}

pub(super) fn release(
    connection: &Connection,
    destination: &str,
    owner: Owner,
    lanes: &[(Lane, Fence)],
) -> rusqlite::Result<()> {
    let text = "UPDATE hapax_outbox_lanes SET owner = NULL \
                WHERE destination = ?1 AND lane = ?2 AND owner = ?3 AND fence = ?4";
    let mut statement = connection.prepare_cached(text)?;
    for (lane, fence) in lanes {
        statement.execute(params![destination, lane.number(), owner.0, fence.get()])?;
    }
    Ok(())
}

pub(super) fn leave(
    connection: &Connection,
    destination: &str,
    owner: Owner,
) -> rusqlite::Result<()> {
    for text in [
        "DELETE FROM hapax_outbox_relays WHERE destination = ?1 AND owner = ?2",
        "UPDATE hapax_outbox_lanes SET owner = NULL WHERE destination = ?1 AND owner = ?2",
    ] {
        connection.prepare_cached(text)?.execute(params![destination, owner.0])?;
    }
    Ok(())
}

/// Stores how far lanes are; which of them are under other fences.
pub(super) fn acknowledge(
    connection: &Connection,
    destination: &str,
    progress: &LaneProgress,
) -> rusqlite::Result<Vec<Lane>> {
    let mut lost = Vec::new();
    let text = "UPDATE hapax_outbox_lanes SET low = max(low, ?4) \
                WHERE destination = ?1 AND lane = ?2 AND fence = ?3";
    let mut store = connection.prepare_cached(text)?;
    for low in &progress.lows {
        let (lane, fence) = (low.lane.number(), low.fence.get());
        if store.execute(params![destination, lane, fence, low.low])? == 0 {
            lost.push(low.lane);
        }
    }
    let text = "DELETE FROM hapax_outbox_parked WHERE destination = ?1 AND position = ?2";
    let mut remove = connection.prepare_cached(text)?;
    for sent in &progress.replayed {
        if is_under(connection, destination, sent.lane, sent.fence)? {
            remove.execute(params![destination, sent.position])?;
        } else if !lost.contains(&sent.lane) {
            lost.push(sent.lane);
        }
    }
    Ok(lost)
}

/// Whether a lane is under this fence.
pub(super) fn is_under(
    connection: &Connection,
    destination: &str,
    lane: Lane,
    fence: Fence,
) -> rusqlite::Result<bool> {
    let text =
        "SELECT 1 FROM hapax_outbox_lanes WHERE destination = ?1 AND lane = ?2 AND fence = ?3";
    connection.prepare_cached(text)?.exists(params![destination, lane.number(), fence.get()])
}
