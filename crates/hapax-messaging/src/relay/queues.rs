//! Which events are on their way, and what follows from each verdict.

use std::collections::BTreeSet;

use hapax_core::{
    limits::OUTBOX_LANES,
    outbox::{EventDelivery, Lane, Parking, Position, ReadLimits, Stored},
};
use tokio::time::Instant;

use super::{
    opening::FlightVerdict,
    options::RelayOptions,
    pipe::{Name, Pipe},
};
use crate::sink::{Outage, Verdict};

/// An event that waits or flies.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) event: Stored,
    /// Which life of its lane it was read in: what was read in an earlier one is read again.
    epoch: u64,
}

impl Item {
    pub(super) fn name(&self) -> Name {
        (self.event.topic.clone(), self.event.key.clone())
    }
}

/// What follows.
#[derive(Debug)]
pub(super) enum FlightOutcome {
    /// It was taken.
    Sent { lane: Lane, position: Position, weight: usize },
    /// These are to be parked.
    Park { lane: Lane, name: Name, events: Vec<(Item, Parking)> },
}

/// Events under way together.
#[derive(Debug, Clone)]
pub(super) struct InFlightEvents {
    pub(super) pipe: usize,
    pub(super) events: Vec<Stored>,
    epochs: Vec<u64>,
}

impl InFlightEvents {
    fn items(self) -> Vec<Item> {
        let items = self.events.into_iter().zip(self.epochs);
        items.map(|(event, epoch)| Item { event, epoch }).collect()
    }
}

#[derive(Debug)]
pub(super) struct Queues {
    pipes: Vec<Pipe>,
    epochs: [u64; OUTBOX_LANES as usize],
    /// How many events of each lane fly.
    flying: [usize; OUTBOX_LANES as usize],
    /// Lanes of which nothing more is sent.
    leaving: BTreeSet<Lane>,
    events: usize,
    bytes: usize,
}

impl Queues {
    pub(super) fn new(pipes: usize) -> Self {
        Self {
            pipes: (0..pipes).map(|_| Pipe::default()).collect(),
            epochs: [0; OUTBOX_LANES as usize],
            flying: [0; OUTBOX_LANES as usize],
            leaving: BTreeSet::new(),
            events: 0,
            bytes: 0,
        }
    }

    /// Takes in what the read of this number brought, and says what of it is to be parked.
    pub(super) fn take(&mut self, look: u64, deliveries: Vec<EventDelivery>) -> Vec<FlightOutcome> {
        self.pipes.iter_mut().for_each(|pipe| pipe.looked(look));
        for EventDelivery { event, source } in deliveries {
            if self.leaving.contains(&event.lane) {
                continue;
            }
            self.events += 1;
            self.bytes += event.weight();
            let item = Item { epoch: self.epochs[event.lane.index()], event };
            self.pipe(item.event.lane).push(item, source);
        }
        self.due_aside()
    }

    /// Whether more may be read.
    pub(super) fn has_room(&self, window: ReadLimits) -> bool {
        self.events < window.rows && self.bytes < window.bytes
    }

    /// How many events wait or fly.
    pub(super) fn len(&self) -> usize {
        self.events
    }

    /// What is to be sent now.
    pub(super) fn flights(&mut self, now: Instant, batch: usize) -> Vec<InFlightEvents> {
        let mut flights = Vec::new();
        for (pipe, queue) in self.pipes.iter_mut().enumerate() {
            let Some(items) = queue.load(now, batch) else { continue };
            let mut flight = InFlightEvents { pipe, events: Vec::new(), epochs: Vec::new() };
            for item in items {
                self.flying[item.event.lane.index()] += 1;
                flight.epochs.push(item.epoch);
                flight.events.push(item.event);
            }
            flights.push(flight);
        }
        flights
    }

    /// What was sent came back.
    pub(super) fn landed(
        &mut self,
        flight: InFlightEvents,
        verdicts: Result<Vec<FlightVerdict>, Outage>,
        options: &RelayOptions,
        now: Instant,
    ) -> Landed {
        let pipe = flight.pipe;
        flight.events.iter().for_each(|event| self.flying[event.lane.index()] -= 1);
        match verdicts {
            Err(outage) => {
                let (kept, _) = self.sift(flight.items(), Vec::new());
                self.pipes[pipe].grounded(kept, &outage, now);
                Landed { outcomes: Vec::new(), outage: Some(outage) }
            }
            Ok(verdicts) => {
                let (kept, verdicts) = self.sift(flight.items(), verdicts);
                let outcomes = self.pipes[pipe].landed(kept, verdicts, options, now);
                outcomes.iter().for_each(|outcome| self.settled(outcome));
                Landed { outcomes, outage: None }
            }
        }
    }

    /// One parking of this key was stored, before any read later than the one of this number.
    pub(super) fn parked(&mut self, lane: Lane, name: &Name, looks: u64) -> Vec<FlightOutcome> {
        self.pipe(lane).parked(name, looks);
        self.due_aside()
    }

    fn due_aside(&mut self) -> Vec<FlightOutcome> {
        let due: Vec<FlightOutcome> = self.pipes.iter_mut().flat_map(Pipe::due_aside).collect();
        due.iter().for_each(|outcome| self.settled(outcome));
        due
    }

    /// A lane was lost, or is begun anew: what waits of it is dropped, and what flies counts for
    /// nothing.
    pub(super) fn drop_lane(&mut self, lane: Lane) {
        self.epochs[lane.index()] += 1;
        self.leaving.remove(&lane);
        self.forget_waiting(lane);
    }

    /// Sends nothing more of a lane; what flies still counts.
    pub(super) fn leave(&mut self, lane: Lane) {
        self.leaving.insert(lane);
        self.forget_waiting(lane);
    }

    /// The lanes of which nothing more is sent and nothing flies.
    pub(super) fn left(&self) -> Vec<Lane> {
        let left = self.leaving.iter().copied();
        left.filter(|lane| self.flying[lane.index()] == 0).collect()
    }

    pub(super) fn leaving(&self) -> &BTreeSet<Lane> {
        &self.leaving
    }

    /// How many sends are under way.
    pub(super) fn flights_under_way(&self) -> usize {
        self.pipes.iter().filter(|pipe| pipe.flies()).count()
    }

    /// When there may be something to send that there is not now.
    pub(super) fn due(&self) -> Option<Instant> {
        self.pipes.iter().filter_map(Pipe::due).min()
    }

    /// The destination is to be tried at once.
    pub(super) fn awake(&mut self) {
        self.pipes.iter_mut().for_each(Pipe::awake);
    }

    fn pipe(&mut self, lane: Lane) -> &mut Pipe {
        let pipes = self.pipes.len();
        &mut self.pipes[lane.index() % pipes]
    }

    /// Leaves out what was read in an earlier life of its lane, and what is not to be sent again.
    fn sift(
        &mut self,
        items: Vec<Item>,
        verdicts: Vec<FlightVerdict>,
    ) -> (Vec<Item>, Vec<FlightVerdict>) {
        let taken = FlightVerdict::Sink(Verdict::Taken);
        let silent =
            || FlightVerdict::Sink(Verdict::Missed("the sink said nothing of it".to_owned()));
        let mut verdicts = verdicts.into_iter();
        let mut kept = (Vec::with_capacity(items.len()), Vec::with_capacity(items.len()));
        for item in items {
            let verdict = verdicts.next().unwrap_or_else(silent);
            let lane = item.event.lane;
            let stale = item.epoch != self.epochs[lane.index()];
            if stale || (verdict != taken && self.leaving.contains(&lane)) {
                self.gone(&item.event);
            } else {
                kept.0.push(item);
                kept.1.push(verdict);
            }
        }
        kept
    }

    fn settled(&mut self, outcome: &FlightOutcome) {
        match outcome {
            FlightOutcome::Sent { weight, .. } => {
                self.events = self.events.saturating_sub(1);
                self.bytes = self.bytes.saturating_sub(*weight);
            }
            FlightOutcome::Park { events, .. } => {
                events.iter().for_each(|(item, _)| self.gone(&item.event));
            }
        }
    }

    fn forget_waiting(&mut self, lane: Lane) {
        let dropped = self.pipe(lane).drop_lane(lane);
        dropped.iter().for_each(|item| self.gone(&item.event));
    }

    fn gone(&mut self, event: &Stored) {
        self.events = self.events.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(event.weight());
    }
}

/// What came back, sorted.
#[derive(Debug)]
pub(super) struct Landed {
    pub(super) outcomes: Vec<FlightOutcome>,
    /// The destination took nothing, and is left alone for a while.
    pub(super) outage: Option<Outage>,
}
