//! One stream of events: a send at a time, so that a key's events never overtake each other.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use hapax_core::outbox::{DeliverySource, Hold, Lane, Parking};
use tokio::time::Instant;

use super::{
    opening::FlightVerdict,
    options::{OnFailure, RelayOptions},
    parking_keys::{ParkingKeys, follow},
    queues::{FlightOutcome, Item},
    stuck_key::{Remedy, StuckKey, StuckKeyTurn},
};
use crate::sink::{Outage, Verdict};

/// The pause after the first of several outages in a row; it doubles up to the longest.
const REST_MIN: Duration = Duration::from_millis(100);
const REST_MAX: Duration = Duration::from_secs(15);

/// The topic and key of an event.
pub(super) type Name = (String, String);

#[derive(Debug, Default)]
pub(super) struct Pipe {
    ready: VecDeque<Item>,
    /// Keys that are stuck. Their later events are here and not in `ready`.
    trouble: HashMap<Name, StuckKey>,
    /// Keys whose events are being parked. Their later events are here and not in `ready`.
    aside: ParkingKeys,
    flying: bool,
    /// The destination is left alone until then.
    rest_until: Option<Instant>,
    outages: u32,
}

impl Pipe {
    /// Takes in an event, as it was read.
    pub(super) fn push(&mut self, item: Item, source: DeliverySource) {
        match source {
            DeliverySource::Held => self.aside.push(item),
            DeliverySource::Log | DeliverySource::Parked if self.aside.holds(&item) => {
                self.aside.push(item)
            }
            DeliverySource::Log | DeliverySource::Parked => self.push_to_send(item),
        }
    }

    fn push_to_send(&mut self, item: Item) {
        match self.trouble_of(&item) {
            Some(trouble) => trouble.waiting.push_back(item),
            None => self.ready.push_back(item),
        }
    }

    /// Events to send now, at most so many; they fly until [`Pipe::landed`].
    pub(super) fn load(&mut self, now: Instant, limit: usize) -> Option<Vec<Item>> {
        if self.flying || self.rest_until.is_some_and(|until| now < until) {
            return None;
        }
        let mut load = Vec::new();
        for trouble in self.trouble.values_mut() {
            if matches!(trouble.turn, StuckKeyTurn::At(due) if due <= now) && load.len() < limit {
                let room = (limit - load.len()).min(trouble.waiting.len());
                load.extend(trouble.waiting.drain(..room));
                trouble.turn = StuckKeyTurn::Flying;
            }
        }
        let room = (limit - load.len()).min(self.ready.len());
        load.extend(self.ready.drain(..room));
        self.flying = !load.is_empty();
        self.flying.then_some(load)
    }

    /// When [`Pipe::load`] may have something that it has not now, without anything else happening.
    pub(super) fn due(&self) -> Option<Instant> {
        if self.flying {
            return None;
        }
        let turns = self.trouble.values().filter_map(|trouble| match trouble.turn {
            StuckKeyTurn::At(due) => Some(due),
            StuckKeyTurn::Flying => None,
        });
        let ready = self.rest_until.filter(|_| !self.ready.is_empty());
        let first = turns.chain(ready).min();
        first.map(|due| self.rest_until.map_or(due, |until| due.max(until)))
    }

    /// What was sent came back with these verdicts.
    pub(super) fn landed(
        &mut self,
        items: Vec<Item>,
        verdicts: Vec<FlightVerdict>,
        options: &RelayOptions,
        now: Instant,
    ) -> Vec<FlightOutcome> {
        self.ground();
        self.outages = 0;
        let mut outcomes = Vec::with_capacity(items.len());
        let mut troubled = Vec::new();
        for (item, verdict) in items.into_iter().zip(verdicts) {
            let verdict = match verdict {
                FlightVerdict::Sink(verdict) => verdict,
                FlightVerdict::Unsendable(reason) => {
                    outcomes.push(unsendable(item, reason));
                    continue;
                }
            };
            match verdict {
                Verdict::Taken => outcomes.push(sent(&item)),
                Verdict::Missed(_) | Verdict::Refused(_) => {
                    let name = item.name();
                    let trouble = self.begin_trouble(&name);
                    let remedy = trouble.stuck.after(item.event.position, &verdict, options, now);
                    troubled.push((name, item, Some(remedy)));
                }
                Verdict::Behind => troubled.push((item.name(), item, None)),
            }
        }
        // Backwards, so that each goes to the front of its key's line and the first comes first.
        for (name, item, remedy) in troubled.into_iter().rev() {
            self.remedy(name, item, remedy, options, now, &mut outcomes);
        }
        self.clear(now);
        outcomes
    }

    /// The destination took nothing: everything is to be sent again, later.
    pub(super) fn grounded(&mut self, items: Vec<Item>, outage: &Outage, now: Instant) {
        self.ground();
        self.outages = self.outages.saturating_add(1);
        let doubled = REST_MIN.saturating_mul(1 << (self.outages - 1).min(16)).min(REST_MAX);
        let rest = doubled / 2 + doubled.mul_f64(fastrand::f64() / 2.0);
        self.rest_until = Some(now + outage.pause().unwrap_or_default().max(rest));
        for item in items.into_iter().rev() {
            match self.trouble_of(&item) {
                Some(trouble) => {
                    trouble.turn = StuckKeyTurn::At(now);
                    trouble.waiting.push_front(item);
                }
                None => self.ready.push_front(item),
            }
        }
        self.clear(now);
    }

    /// Ends a rest, so that the destination is tried at once.
    pub(super) fn awake(&mut self) {
        self.rest_until = None;
        self.outages = 0;
    }

    /// Takes out what waits of a lane; what flies is the caller's.
    pub(super) fn drop_lane(&mut self, lane: Lane) -> Vec<Item> {
        let mut dropped = Vec::new();
        let mut sift = |items: &mut VecDeque<Item>| {
            let (gone, kept) =
                std::mem::take(items).into_iter().partition(|item| item.event.lane == lane);
            *items = kept;
            dropped.extend::<VecDeque<Item>>(gone);
        };
        sift(&mut self.ready);
        self.trouble.values_mut().for_each(|trouble| sift(&mut trouble.waiting));
        self.trouble.retain(|(topic, key), _| Lane::of(topic, key) != lane);
        dropped.extend(self.aside.drop_lane(lane));
        dropped
    }

    /// One parking of a key's events was stored; so many reads had begun by then.
    pub(super) fn parked(&mut self, name: &Name, looks: u64) {
        self.aside.parked(name, looks);
    }

    /// A read that began as this one in number was taken.
    pub(super) fn looked(&mut self, look: u64) {
        self.aside.looked(look);
    }

    /// What is to be parked now, behind others of its key.
    pub(super) fn due_aside(&mut self) -> Vec<FlightOutcome> {
        self.aside.due()
    }

    /// Whether a send is under way.
    pub(super) fn flies(&self) -> bool {
        self.flying
    }

    fn ground(&mut self) {
        self.flying = false;
        self.rest_until = None;
    }

    fn trouble_of(&mut self, item: &Item) -> Option<&mut StuckKey> {
        if self.trouble.is_empty() { None } else { self.trouble.get_mut(&item.name()) }
    }

    /// The trouble of this key, with everything that waits of it.
    fn begin_trouble(&mut self, name: &Name) -> &mut StuckKey {
        if !self.trouble.contains_key(name) {
            let (later, kept) = std::mem::take(&mut self.ready)
                .into_iter()
                .partition(|item| item.event.topic == name.0 && item.event.key == name.1);
            self.ready = kept;
            let trouble = StuckKey { waiting: later, ..StuckKey::default() };
            self.trouble.insert(name.clone(), trouble);
        }
        self.trouble.entry(name.clone()).or_default()
    }

    fn remedy(
        &mut self,
        name: Name,
        item: Item,
        remedy: Option<Remedy>,
        options: &RelayOptions,
        now: Instant,
        outcomes: &mut Vec<FlightOutcome>,
    ) {
        let trouble = self.begin_trouble(&name);
        let (reason, attempts) = match remedy {
            // Behind another one, which decides when it is their turn.
            None => return trouble.waiting.push_front(item),
            Some(Remedy::Again(at)) => {
                trouble.waiting.push_front(item);
                trouble.turn = StuckKeyTurn::At(at);
                return;
            }
            Some(Remedy::Park { reason, attempts }) => (reason, attempts),
        };
        let (lane, position) = (item.event.lane, item.event.position);
        let park = |hold| Parking::new(position, hold, attempts, reason);
        if options.on_failure == OnFailure::ParkMessage {
            trouble.turn = StuckKeyTurn::At(now);
            outcomes.push(FlightOutcome::Park {
                lane,
                name,
                events: vec![(item, park(Hold::Message))],
            });
        } else {
            let mut events = vec![(item, park(Hold::Tail))];
            events.extend(trouble.waiting.drain(..).map(follow));
            outcomes.push(self.aside.park(lane, name, events));
        }
    }

    /// Forgets troubles that are over. Nothing flies.
    fn clear(&mut self, now: Instant) {
        self.trouble.retain(|_, trouble| !trouble.waiting.is_empty());
        for trouble in self.trouble.values_mut() {
            // All that flew of it was taken, and more has come.
            if trouble.turn == StuckKeyTurn::Flying {
                trouble.turn = StuckKeyTurn::At(now);
            }
        }
    }
}

/// What is never sent is parked at once, whatever becomes of what is not taken, and later events of
/// its key go on without it.
fn unsendable(item: Item, reason: String) -> FlightOutcome {
    let (lane, name) = (item.event.lane, item.name());
    let parking = Parking::new(item.event.position, Hold::Message, 0, reason);
    FlightOutcome::Park { lane, name, events: vec![(item, parking)] }
}

fn sent(item: &Item) -> FlightOutcome {
    let event = &item.event;
    FlightOutcome::Sent { lane: event.lane, position: event.position, weight: event.weight() }
}
