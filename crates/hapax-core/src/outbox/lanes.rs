//! How relays share the lanes of a destination.

use super::stored_event::Lane;
use crate::{limits::OUTBOX_LANES, record::Owner, time::Timestamp};

/// A relay that serves a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServingRelay {
    /// Its name.
    pub owner: Owner,
    /// Until when it is trusted to be alive.
    pub until: Timestamp,
}

/// What a relay does about its lanes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LanePlan {
    /// Lanes nobody alive has: to be taken.
    pub take: Vec<Lane>,
    /// How many of its own it should finish and give back, for others to have their share.
    pub give_back: usize,
}

/// The most lanes one of so many relays should have.
pub fn share(relays: usize) -> usize {
    usize::from(OUTBOX_LANES).div_ceil(relays.max(1))
}

/// What `me` should take and give back, given who is alive and who has what.
///
/// Every lane is somebody's share: as long as one relay asks, no lane stays free.
pub fn plan(
    now: Timestamp,
    me: Owner,
    relays: &[ServingRelay],
    lanes: &[(Lane, Option<Owner>)],
) -> LanePlan {
    let alive = |owner: Owner| {
        owner == me || relays.iter().any(|relay| relay.owner == owner && relay.until > now)
    };
    let others = relays.iter().filter(|relay| relay.owner != me && relay.until > now).count();
    let share = share(others + 1);
    let mine = lanes.iter().filter(|(_, owner)| *owner == Some(me)).count();
    let free = lanes.iter().filter(|(_, owner)| owner.is_none_or(|owner| !alive(owner)));
    LanePlan {
        take: free.map(|(lane, _)| *lane).take(share.saturating_sub(mine)).collect(),
        give_back: mine.saturating_sub(share),
    }
}
