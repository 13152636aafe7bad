//! What follows when something ended.

use hapax_core::{
    StoreError,
    outbox::{Hold, Lane, LaneProgress, Leases, OutboxLog, Park, Seen},
};
use tokio::time::Instant;

use super::{OUTBOX_PAUSE, OutboxRequest, Runner, RunnerMode, timers::ReadResult};
use crate::{
    relay::{
        error::RelayError,
        opening::FlightVerdict,
        pipe::Name,
        queues::{FlightOutcome, InFlightEvents, Landed},
        status::RelayCounters,
        step::{self, RelayStep},
    },
    sink::{Outage, Sink, Verdict},
};

impl<O: OutboxLog, S: Sink> Runner<O, S> {
    pub(super) fn ended(&mut self, step: RelayStep) -> Result<(), RelayError> {
        let now = Instant::now();
        match step {
            RelayStep::Leased { asked, leases } => {
                self.errands.remove(&OutboxRequest::Lease);
                self.leased(asked, leases, now)?;
            }
            RelayStep::Looked { look, seen } => self.looked(look, seen, now)?,
            RelayStep::Listed(writers) => {
                match writers {
                    Ok(writers) => self.reader.listed(&writers),
                    Err(error) => self.outbox_failed("list who writes", &error),
                }
                self.read_ended(now);
            }
            RelayStep::Landed { flight, verdicts } => self.landed(flight, verdicts, now),
            RelayStep::Acknowledged { progress, lost } => {
                // A read that began before it would bring again what was sent from what was parked.
                if self.errands.contains(&OutboxRequest::Read) && !progress.replayed.is_empty() {
                    self.acknowledged = Some((progress, lost));
                } else {
                    self.acknowledged(&progress, lost, now);
                }
            }
            RelayStep::Parked { park, name, done } => self.parked(park, name, done),
            RelayStep::Released { lanes, progress, done } => {
                self.errands.remove(&OutboxRequest::Release);
                // If it failed they are somebody's again after the lease, and ours to ask for.
                self.stored(&progress, done, now);
                lanes.iter().for_each(|(lane, _)| self.let_go(*lane));
            }
            RelayStep::Paused(done) => {
                self.errands.remove(&OutboxRequest::Pause);
                if let Err(error) = done {
                    self.outbox_failed("pause the destination", &error);
                }
            }
            RelayStep::Retired(done) => {
                self.errands.remove(&OutboxRequest::Retire);
                if let Err(error) = done {
                    self.outbox_failed("remove what is final", &error);
                }
            }
        }
        Ok(())
    }

    fn removed(&self) -> RelayError {
        RelayError::Removed { name: self.destination.name().to_owned() }
    }

    fn leased(
        &mut self,
        asked: Instant,
        leases: Result<Option<Leases>, StoreError>,
        now: Instant,
    ) -> Result<(), RelayError> {
        match leases {
            Err(error) => {
                self.outbox_failed("renew the lease", &error);
                self.timers.leased(asked, None, now);
            }
            Ok(None) => return Err(self.removed()),
            Ok(Some(leases)) => {
                self.outbox_outage.ends();
                self.timers.leased(asked, Some(leases.until.after(leases.now)), now);
                if self.errands.contains(&OutboxRequest::Read) {
                    self.leases = Some(leases);
                } else {
                    self.hold(&leases, now);
                }
            }
        }
        Ok(())
    }

    /// These are the lanes now, and no others.
    fn hold(&mut self, leases: &Leases, now: Instant) {
        let here: Vec<_> = self.reader.lanes().map(|held| (held.lane, held.fence)).collect();
        for (lane, fence) in here {
            let kept = leases.lanes.iter().any(|held| held.lane == lane && held.fence == fence);
            if !kept {
                self.let_go(lane);
            }
        }
        for held in &leases.lanes {
            if self.reader.fence(held.lane).is_none() {
                self.queues.drop_lane(held.lane);
                self.reader.add(*held);
                self.timers.look_at_once(now);
            }
        }
        self.set_paused(leases.paused);
        let leaving = self.queues.leaving();
        let more = leases.give_back.saturating_sub(leaving.len());
        let lanes = self.reader.lanes().map(|held| held.lane);
        let lanes: Vec<Lane> = lanes.filter(|lane| !leaving.contains(lane)).take(more).collect();
        lanes.into_iter().for_each(|lane| self.queues.leave(lane));
    }

    fn let_go(&mut self, lane: Lane) {
        self.reader.remove(lane);
        self.queues.drop_lane(lane);
    }

    fn set_paused(&mut self, paused: bool) {
        match (self.mode, paused) {
            (RunnerMode::Sending, true) => self.mode = RunnerMode::Paused,
            (RunnerMode::Paused, false) => {
                self.mode = RunnerMode::Sending;
                self.queues.awake();
                self.counters.set_trouble(None);
            }
            (RunnerMode::Sending, false)
            | (RunnerMode::Paused, true)
            | (RunnerMode::Stopping, _) => {}
        }
    }

    fn looked(
        &mut self,
        look: u64,
        seen: Result<Option<Seen>, StoreError>,
        now: Instant,
    ) -> Result<(), RelayError> {
        let seen = match seen {
            Ok(Some(seen)) => seen,
            Ok(None) => return Err(self.removed()),
            Err(error) => {
                self.outbox_failed("read the outbox", &error);
                self.timers.look_failed(now);
                self.read_ended(now);
                return Ok(());
            }
        };
        let store_now = seen.now;
        let batch = self.reader.take(seen);
        if batch.restarted {
            let lanes: Vec<Lane> = self.reader.lanes().map(|held| held.lane).collect();
            lanes.into_iter().for_each(|lane| self.queues.drop_lane(lane));
        }
        let found = match (batch.more, batch.events.is_empty()) {
            (true, _) => ReadResult::More,
            (false, false) => ReadResult::Some,
            (false, true) => ReadResult::Nothing { gaps: !self.reader.gaps().is_empty() },
        };
        self.timers.looked(now, found, &self.options);
        let outcomes = self.queues.take(look, batch.events);
        self.apply(outcomes);
        if self.reader.inquire(store_now) {
            self.steps.push(step::list(&self.outbox));
        } else {
            self.read_ended(now);
        }
        Ok(())
    }

    /// Nothing is being read: lanes may change.
    fn read_ended(&mut self, now: Instant) {
        self.errands.remove(&OutboxRequest::Read);
        if let Some((progress, lost)) = self.acknowledged.take() {
            self.acknowledged(&progress, lost, now);
        }
        if let Some(leases) = self.leases.take() {
            self.hold(&leases, now);
        }
    }

    fn acknowledged(
        &mut self,
        progress: &LaneProgress,
        lost: Result<Vec<Lane>, StoreError>,
        now: Instant,
    ) {
        self.errands.remove(&OutboxRequest::Acknowledge);
        self.stored(progress, lost, now);
    }

    fn landed(
        &mut self,
        flight: InFlightEvents,
        verdicts: Result<Vec<FlightVerdict>, Outage>,
        now: Instant,
    ) {
        self.count(verdicts.as_deref().unwrap_or_default());
        let Landed { outcomes, outage } = self.queues.landed(flight, verdicts, &self.options, now);
        match outage {
            None => {
                self.timers.landed(now, &self.options);
                self.counters.set_trouble(None);
                self.outage.ends();
            }
            Some(outage) => self.suffer(&outage, now),
        }
        self.apply(outcomes);
    }

    fn count(&self, verdicts: &[FlightVerdict]) {
        let sum = |wanted: fn(&Verdict) -> bool| {
            let is_wanted = |verdict: &&FlightVerdict| match verdict {
                FlightVerdict::Sink(verdict) => wanted(verdict),
                FlightVerdict::Unsendable(_) => false,
            };
            verdicts.iter().filter(is_wanted).count()
        };
        let counters = &self.counters;
        RelayCounters::count(&counters.sent, sum(|it| matches!(it, Verdict::Taken)));
        RelayCounters::count(&counters.missed, sum(|it| matches!(it, Verdict::Missed(_))));
        RelayCounters::count(&counters.refused, sum(|it| matches!(it, Verdict::Refused(_))));
    }

    fn suffer(&mut self, outage: &Outage, now: Instant) {
        RelayCounters::count(&self.counters.outages, 1);
        let destination = self.destination.name();
        let cause = std::error::Error::source(outage).map(ToString::to_string).unwrap_or_default();
        self.counters.set_trouble(Some(format!("{outage}: {cause}")));
        if !outage.needs_somebody() {
            if self.outage.goes_on(now) {
                tracing::warn!(destination, cause, "the destination takes nothing; waiting for it");
            }
        } else if self.mode == RunnerMode::Sending {
            tracing::error!(destination, cause, "the destination is paused until it is resumed");
            self.mode = RunnerMode::Paused;
            if self.errands.insert(OutboxRequest::Pause) {
                self.steps.push(step::pause(&self.outbox, destination));
            }
        }
    }

    fn apply(&mut self, outcomes: Vec<FlightOutcome>) {
        for outcome in outcomes {
            match outcome {
                FlightOutcome::Sent { lane, position, .. } => {
                    self.reader.acknowledge(lane, position)
                }
                FlightOutcome::Park { lane, name, events } => {
                    // Without the lane it is somebody else's to park.
                    let Some(fence) = self.reader.fence(lane) else { continue };
                    let destination = self.destination.name().to_owned();
                    let events = events.into_iter().map(|(_, parking)| parking).collect();
                    let park = Park { destination, lane, fence, events };
                    self.steps.push(step::park(&self.outbox, park, name, None));
                }
            }
        }
    }

    fn parked(&mut self, park: Park, name: Name, done: Result<bool, StoreError>) {
        match done {
            Err(error) => {
                self.outbox_failed("park events", &error);
                if self.reader.fence(park.lane) == Some(park.fence) {
                    self.steps.push(step::park(&self.outbox, park, name, Some(OUTBOX_PAUSE)));
                }
            }
            // The next lease tells whose the lane is.
            Ok(false) => {}
            Ok(true) => {
                RelayCounters::count(&self.counters.parked, park.events.len());
                let destination = self.destination.name();
                for event in &park.events {
                    self.reader.parked(park.lane, event.position);
                    let (position, reason) = (event.position, event.reason());
                    tracing::warn!(destination, position, reason, "an event was parked");
                }
                // One that is parked alone holds nobody up.
                if park.events.iter().all(|event| event.hold != Hold::Message) {
                    let more = self.queues.parked(park.lane, &name, self.looks);
                    self.apply(more);
                }
            }
        }
    }

    fn stored(
        &mut self,
        progress: &LaneProgress,
        lost: Result<Vec<Lane>, StoreError>,
        now: Instant,
    ) {
        match lost {
            Ok(lost) => {
                self.reader.stored(progress, &lost);
                lost.into_iter().for_each(|lane| self.let_go(lane));
            }
            Err(error) => {
                self.outbox_failed("store the progress", &error);
                self.timers.landed(now, &self.options);
            }
        }
    }
}
