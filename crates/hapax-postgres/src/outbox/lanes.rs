//! Who sends which lane, and how far it is.

use hapax_core::{
    Fence, Owner, StoreError, Timestamp,
    outbox::{Lane, LaneProgress, Leased, Leases, RelayLease, ServingRelay, plan},
    time::micros,
};

use super::stored_lane;
use crate::{connection::SharedConnection, error::StatementFailure, row::column};

const LEASE: &str = include_str!("../sql/outbox_lease.sql");
const TAKE: &str = include_str!("../sql/outbox_take.sql");
const ACKNOWLEDGE: &str = include_str!("../sql/outbox_acknowledge.sql");
const RELEASE: &str = "UPDATE hapax.outbox_lanes AS l SET owner = NULL \
     FROM unnest($3::smallint[], $4::bigint[]) AS t(lane, fence) \
     WHERE l.destination = $1 AND l.owner = $2 AND l.lane = t.lane AND l.fence = t.fence";
const LEAVE: &str = "WITH gone AS (DELETE FROM hapax.outbox_relays WHERE destination = $1 AND owner = $2) \
     UPDATE hapax.outbox_lanes SET owner = NULL WHERE destination = $1 AND owner = $2";

/// Renews, then takes what is free: the second statement writes only over what the first one saw.
pub(super) async fn lease(
    wire: &SharedConnection,
    lease: &RelayLease,
) -> Result<Option<Leases>, StoreError> {
    let (destination, me) = (&lease.destination, lease.owner);
    let rows = wire.query(LEASE, &[destination, &me.0, &micros(lease.span)]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let (now, until) = (column(row, 0)?, column(row, 1)?);
    let (now, until) = (Timestamp::from_micros(now), Timestamp::from_micros(until));
    let (relays, untils): (Vec<i64>, Vec<i64>) = (column(row, 3)?, column(row, 4)?);
    let relay =
        |(owner, until)| ServingRelay { owner: Owner(owner), until: Timestamp::from_micros(until) };
    let relays: Vec<_> = relays.into_iter().zip(untils).map(relay).collect();
    let owners: Vec<Option<i64>> = column(row, 5)?;
    let owners: Vec<_> =
        Lane::all().zip(owners.into_iter().map(|owner| owner.map(Owner))).collect();
    let (fences, lows): (Vec<i64>, Vec<i64>) = (column(row, 6)?, column(row, 7)?);
    let plan = plan(now, me, &relays, &owners);
    let mut lanes = Vec::new();
    for ((lane, owner), (fence, low)) in owners.iter().zip(fences.iter().zip(&lows)) {
        if *owner == Some(me) {
            lanes.push(Leased { lane: *lane, fence: stored_fence(*fence)?, low: *low });
        }
    }
    if !plan.take.is_empty() {
        let free: Vec<_> = plan.take.iter().map(|lane| lane.number()).collect();
        let seen: Vec<_> = plan.take.iter().map(|lane| fences[lane.index()]).collect();
        for row in wire.query(TAKE, &[destination, &me.0, &free, &seen]).await? {
            let (lane, fence) = (stored_lane(column(&row, 0)?)?, stored_fence(column(&row, 1)?)?);
            lanes.push(Leased { lane, fence, low: column(&row, 2)? });
        }
        lanes.sort_unstable_by_key(|leased| leased.lane);
    }
    Ok(Some(Leases { now, until, paused: column(row, 2)?, lanes, give_back: plan.give_back }))
}

pub(super) async fn release(
    wire: &SharedConnection,
    destination: &str,
    owner: Owner,
    lanes: &[(Lane, Fence)],
) -> Result<(), StatementFailure> {
    let fences: Vec<_> = lanes.iter().map(|(_, fence)| fence.get()).collect();
    let lanes: Vec<_> = lanes.iter().map(|(lane, _)| lane.number()).collect();
    wire.query(RELEASE, &[&destination, &owner.0, &lanes, &fences]).await?;
    Ok(())
}

pub(super) async fn leave(
    wire: &SharedConnection,
    destination: &str,
    owner: Owner,
) -> Result<(), StatementFailure> {
    wire.query(LEAVE, &[&destination, &owner.0]).await?;
    Ok(())
}

pub(super) async fn acknowledge(
    wire: &SharedConnection,
    destination: &str,
    progress: &LaneProgress,
) -> Result<Vec<Lane>, StoreError> {
    if progress.is_empty() {
        return Ok(Vec::new());
    }
    let lows = &progress.lows;
    let lanes: Vec<_> = lows.iter().map(|low| low.lane.number()).collect();
    let fences: Vec<_> = lows.iter().map(|low| low.fence.get()).collect();
    let lows: Vec<_> = lows.iter().map(|low| low.low).collect();
    let sent = &progress.replayed;
    let sent_lanes: Vec<_> = sent.iter().map(|sent| sent.lane.number()).collect();
    let sent_fences: Vec<_> = sent.iter().map(|sent| sent.fence.get()).collect();
    let sent: Vec<_> = sent.iter().map(|sent| sent.position).collect();
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
        [&destination, &lanes, &fences, &lows, &sent_lanes, &sent_fences, &sent];
    let lost = wire.query(ACKNOWLEDGE, &params).await?;
    lost.iter().map(|row| stored_lane(column(row, 0)?)).collect()
}

fn stored_fence(fence: i64) -> Result<Fence, StoreError> {
    Fence::from_stored(fence).ok_or_else(|| StoreError::damaged("a leased lane has no fence"))
}
