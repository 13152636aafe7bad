//! The log, and how far each destination is in it.

use std::collections::BTreeMap;

use crate::{
    outbox::{
        Destination, Event, EventId, Hold, Lag, Lane, LaneLag, Leased, Leases, Look, Parked,
        Parking, Position, RelayLease, Seen, SeenRow, Selection, ServingRelay, Stored, plan,
    },
    record::{Fence, Owner},
    time::Timestamp,
};

#[derive(Default)]
pub(super) struct MemoryLog {
    pub(super) last: Position,
    pub(super) events: BTreeMap<Position, Stored>,
    pub(super) destinations: BTreeMap<String, Progressing>,
}

/// A destination, and how far it is.
pub(super) struct Progressing {
    pub(super) destination: Destination,
    pub(super) paused: bool,
    pub(super) relays: Vec<ServingRelay>,
    pub(super) lanes: Vec<MemoryLane>,
    pub(super) parked: BTreeMap<Position, Parked>,
}

#[derive(Clone, Copy)]
pub(super) struct MemoryLane {
    pub(super) owner: Option<Owner>,
    pub(super) fence: Option<Fence>,
    pub(super) low: Position,
}

impl MemoryLog {
    pub(super) fn append(&mut self, now: Timestamp, event: &Event) -> EventId {
        self.last += 1;
        // Unique here, and that is all that is asked of it.
        let id = EventId::from_bytes(i128::from(self.last).to_be_bytes());
        let mut headers = event.headers().to_vec();
        headers.sort_by(|one, other| one.name.cmp(&other.name));
        let stored = Stored {
            position: self.last,
            lane: Lane::of(event.topic(), event.key()),
            id,
            at: now,
            topic: event.topic().to_owned(),
            key: event.key().to_owned(),
            content_type: event.payload_type().to_owned(),
            headers,
            payload: event.payload().clone(),
        };
        self.events.insert(self.last, stored);
        id
    }

    pub(super) fn look(&self, now: Timestamp, known: &Progressing, look: &Look) -> Seen {
        let (mut rows, mut complete, mut bytes) = (Vec::new(), true, 0);
        for (position, stored) in self.events.iter().filter(|(at, _)| look.covers(**at)) {
            if rows.len() >= look.limits.rows || bytes >= look.limits.bytes {
                complete = false;
                break;
            }
            let wanted = look.wants(stored.lane, *position)
                && known.destination.topics().wants(&stored.topic)
                && !known.parked.contains_key(position);
            let event = wanted.then(|| stored.clone());
            bytes += event.as_ref().map_or(0, Stored::weight);
            let held = event.is_some() && known.holds(stored).is_some();
            rows.push(SeenRow { position: *position, event, held });
        }
        let leased = |parked: &&Parked| look.lanes[parked.event.lane.index()].is_some();
        let replay = known.parked.values().filter(|parked| parked.replaying).filter(leased);
        let replay = replay.take(look.limits.rows).map(|parked| parked.event.clone()).collect();
        Seen { now, session: 0, rows, complete, replay }
    }

    pub(super) fn lag(&self, now: Timestamp, known: &Progressing) -> Lag {
        let lanes = Lane::all().zip(&known.lanes).map(|(lane, row)| {
            let behind = || {
                let above = self.events.range(row.low.saturating_add(1)..).map(|(_, event)| event);
                above.filter(move |event| {
                    event.lane == lane && known.destination.topics().wants(&event.topic)
                })
            };
            LaneLag {
                lane,
                owner: row.owner.filter(|owner| known.alive(now).any(|alive| alive == *owner)),
                low: row.low,
                events: u64::try_from(behind().count()).unwrap_or(u64::MAX),
                oldest: behind().map(|event| event.at).min(),
            }
        });
        Lag {
            now,
            paused: known.paused,
            relays: known.alive(now).count(),
            parked: u64::try_from(known.parked.len()).unwrap_or(u64::MAX),
            lanes: lanes.collect(),
        }
    }
}

impl Progressing {
    pub(super) fn alive(&self, now: Timestamp) -> impl Iterator<Item = Owner> {
        self.relays.iter().filter(move |relay| relay.until > now).map(|relay| relay.owner)
    }

    pub(super) fn lease(&mut self, now: Timestamp, lease: &RelayLease) -> Leases {
        let (me, until) = (lease.owner, now.plus(lease.span));
        self.relays.retain(|relay| relay.owner != me);
        let owners: Vec<_> = Lane::all().zip(self.lanes.iter().map(|row| row.owner)).collect();
        let plan = plan(now, me, &self.relays, &owners);
        self.relays.push(ServingRelay { owner: me, until });
        for lane in plan.take {
            let row = &mut self.lanes[lane.index()];
            row.owner = Some(me);
            row.fence = Some(row.fence.map_or(Fence::FIRST, Fence::next));
        }
        let mine = Lane::all().zip(&self.lanes).filter(|(_, row)| row.owner == Some(me));
        let lanes = mine
            .filter_map(|(lane, row)| Some(Leased { lane, fence: row.fence?, low: row.low }))
            .collect();
        Leases { now, until, paused: self.paused, lanes, give_back: plan.give_back }
    }

    /// Whether parked events hold the key of this one, and if so, whether they are being sent
    /// again.
    pub(super) fn holds(&self, event: &Stored) -> Option<bool> {
        let mut holding = self
            .parked
            .values()
            .filter(|parked| parked.holds_key && same_key(&parked.event, event))
            .peekable();
        holding.peek()?;
        Some(holding.all(|parked| parked.replaying))
    }

    pub(super) fn park(
        &mut self,
        now: Timestamp,
        events: &BTreeMap<Position, Stored>,
        parking: &Parking,
    ) {
        let known = self.parked.get(&parking.position).map(|parked| &parked.event);
        let Some(event) = known.or_else(|| events.get(&parking.position)).cloned() else { return };
        let replaying = match parking.hold {
            Hold::Message | Hold::Tail => false,
            Hold::Follow => self.holds(&event).unwrap_or(true),
        };
        if parking.hold == Hold::Tail {
            // What follows it waits again, too.
            for parked in self.parked.values_mut() {
                if parked.holds_key && same_key(&parked.event, &event) {
                    parked.replaying = false;
                }
            }
        }
        let parked = Parked {
            holds_key: parking.hold != Hold::Message,
            replaying,
            attempts: parking.attempts,
            reason: parking.reason().to_owned(),
            parked_at: now,
            event,
        };
        self.parked.insert(parking.position, parked);
    }
}

pub(super) fn names(selection: &Selection, parked: &Parked) -> bool {
    match selection {
        Selection::All => true,
        Selection::Key { topic, key } => parked.event.topic == *topic && parked.event.key == *key,
        Selection::One(position) => parked.event.position == *position,
    }
}

pub(super) fn same_key(one: &Stored, other: &Stored) -> bool {
    one.topic == other.topic && one.key == other.key
}
