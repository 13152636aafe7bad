//! Keys whose events are being put aside.

use std::collections::HashMap;

use hapax_core::outbox::{Hold, Lane, Parking, Position};

use super::{
    pipe::Name,
    queues::{FlightOutcome, Item},
};

/// Keys of which events are being parked, or were a moment ago.
///
/// Until that is stored, and until a read began after that, nobody but us knows that the key's later
/// events have to wait: what a read shows of them meanwhile, from the log or from what was parked
/// before, is parked behind the others, and not sent.
#[derive(Debug, Default)]
pub(super) struct ParkingKeys {
    keys: HashMap<Name, Key>,
}

#[derive(Debug)]
struct Key {
    /// The first event that is put aside: what is before it is sent.
    first: Position,
    /// Parkings under way.
    parks: u32,
    /// How many reads had begun when the last of them was stored.
    looks: u64,
    /// What was read since, in order.
    later: Vec<Item>,
}

impl ParkingKeys {
    /// Whether this item has to wait behind others of its key.
    pub(super) fn holds(&self, item: &Item) -> bool {
        let key = if self.keys.is_empty() { None } else { self.keys.get(&item.name()) };
        key.is_some_and(|key| item.event.position > key.first)
    }

    /// Parks these events of one key, in order; what comes later waits behind them.
    pub(super) fn park(
        &mut self,
        lane: Lane,
        name: Name,
        events: Vec<(Item, Parking)>,
    ) -> FlightOutcome {
        if let Some((first, _)) = events.first() {
            self.key(name.clone(), first.event.position).parks += 1;
        }
        FlightOutcome::Park { lane, name, events }
    }

    /// Takes in an event that waits behind others of its key.
    pub(super) fn push(&mut self, item: Item) {
        self.key(item.name(), item.event.position).later.push(item);
    }

    fn key(&mut self, name: Name, position: Position) -> &mut Key {
        let new = || Key { first: position, parks: 0, looks: 0, later: Vec::new() };
        let key = self.keys.entry(name).or_insert_with(new);
        key.first = key.first.min(position);
        key
    }

    /// One parking was stored; so many reads had begun by then.
    pub(super) fn parked(&mut self, name: &Name, looks: u64) {
        if let Some(key) = self.keys.get_mut(name) {
            key.parks = key.parks.saturating_sub(1);
            key.looks = looks;
        }
    }

    /// A read that began as this one in number was taken: what was stored before is known to it.
    pub(super) fn looked(&mut self, look: u64) {
        self.keys.retain(|_, key| key.parks > 0 || !key.later.is_empty() || key.looks >= look);
    }

    /// What is to be parked now: of one key, one parking after the other.
    pub(super) fn due(&mut self) -> Vec<FlightOutcome> {
        let mut due = Vec::new();
        for (name, key) in &mut self.keys {
            let Some(first) = key.later.first().filter(|_| key.parks == 0) else { continue };
            let lane = first.event.lane;
            key.parks = 1;
            let events = key.later.drain(..).map(follow).collect();
            due.push(FlightOutcome::Park { lane, name: name.clone(), events });
        }
        due
    }

    /// Forgets the keys of a lane; what waited of them.
    pub(super) fn drop_lane(&mut self, lane: Lane) -> Vec<Item> {
        let dropped = self.keys.extract_if(|(topic, key), _| Lane::of(topic, key) == lane);
        dropped.flat_map(|(_, key)| key.later).collect()
    }
}

/// An event to be parked behind others of its key.
pub(super) fn follow(item: Item) -> (Item, Parking) {
    let position = item.event.position;
    (item, Parking::new(position, Hold::Follow, 0, "waits behind an earlier event of its key"))
}
