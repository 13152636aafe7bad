//! What a relay begins, and when.

use std::time::Duration;

use hapax_core::outbox::{OutboxLog, ReadLimits, RelayLease};
use tokio::time::Instant;

use super::{OUTBOX_PAUSE, OutboxRequest, Runner, RunnerMode};
use crate::{
    relay::{options::RelayOptions, status::RelayCounters, step},
    sink::Sink,
};

/// How often to look while something is missing that may still come: what is stored of the progress
/// waits for it, and nothing else does.
const GAP_PAUSE: Duration = Duration::from_millis(250);
/// A lease is renewed so many times before it ends.
const RENEWALS: u32 = 3;

/// When what is next.
#[derive(Debug)]
pub(super) struct Timers {
    lease: Instant,
    look: Instant,
    /// The pause after the next read that brings nothing.
    pause: Duration,
    last_look: Instant,
    /// Unless there is nothing to store.
    acknowledge: Option<Instant>,
    retire: Instant,
    /// Nothing is sent after this without another sign of life.
    send_until: Instant,
    /// When what flies is no longer waited for.
    grace: Instant,
}

impl Timers {
    pub(super) fn new(now: Instant, options: &RelayOptions) -> Self {
        Self {
            lease: now,
            look: now,
            pause: options.poll_min,
            last_look: now,
            acknowledge: None,
            retire: now + options.retire_every,
            send_until: now,
            grace: now,
        }
    }

    /// The relay is to end.
    pub(super) fn stopped(&mut self, now: Instant, options: &RelayOptions) {
        self.grace = now + options.grace;
    }

    /// Something was emitted. Many rings of a moment are one look.
    pub(super) fn rung(&mut self, now: Instant, options: &RelayOptions) {
        self.pause = options.poll_min;
        self.look = self.look.min(now.max(self.last_look + options.poll_min / 2));
    }

    /// A read brought something, or nothing, or less than there is.
    pub(super) fn looked(&mut self, now: Instant, found: ReadResult, options: &RelayOptions) {
        self.acknowledge.get_or_insert(now + options.acknowledge_every);
        match found {
            ReadResult::More => self.look = now,
            ReadResult::Some => {
                self.pause = options.poll_min;
                self.look = now + self.pause;
            }
            ReadResult::Nothing { gaps } => {
                self.look = now + self.pause;
                let longest = if gaps { GAP_PAUSE.min(options.poll_max) } else { options.poll_max };
                self.pause = (self.pause * 2).min(longest);
            }
        }
    }

    /// The outbox could not be read.
    pub(super) fn look_failed(&mut self, now: Instant) {
        self.look = now + OUTBOX_PAUSE;
    }

    /// Something was taken.
    pub(super) fn landed(&mut self, now: Instant, options: &RelayOptions) {
        self.acknowledge.get_or_insert(now + options.acknowledge_every);
    }

    /// A sign of life that was asked for then is good for so long; without one, soon another.
    pub(super) fn leased(&mut self, asked: Instant, good_for: Option<Duration>, now: Instant) {
        match good_for {
            Some(good_for) => {
                self.send_until = asked + good_for;
                self.lease = asked + good_for / RENEWALS;
            }
            None => self.lease = now + OUTBOX_PAUSE,
        }
    }

    pub(super) fn look_at_once(&mut self, now: Instant) {
        self.look = now;
    }
}

/// What a read brought.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadResult {
    More,
    Some,
    Nothing { gaps: bool },
}

impl<O: OutboxLog, S: Sink> Runner<O, S> {
    pub(super) fn begin_what_is_due(&mut self, now: Instant) {
        self.lease_if_due(now);
        self.release_what_is_left();
        self.acknowledge_if_due(now);
        if self.mode == RunnerMode::Sending {
            self.send_what_waits(now);
            self.look_if_due(now);
            self.retire_if_due(now);
        }
    }

    /// When to look at all this again, if nothing happens before.
    pub(super) fn wake(&self, now: Instant) -> Instant {
        let timers = &self.timers;
        let sending = self.mode == RunnerMode::Sending;
        let sends = sending && now < timers.send_until;
        let mut due = vec![now + self.options.lease];
        due.extend((!self.errands.contains(&OutboxRequest::Lease)).then_some(timers.lease));
        due.extend((self.mode == RunnerMode::Stopping).then_some(timers.grace));
        due.extend(
            timers.acknowledge.filter(|_| !self.errands.contains(&OutboxRequest::Acknowledge)),
        );
        due.extend(self.may_look().then_some(timers.look));
        due.extend(
            (sending && !self.errands.contains(&OutboxRequest::Retire)).then_some(timers.retire),
        );
        due.extend(self.queues.due().filter(|_| sends));
        due.into_iter().min().unwrap_or(now)
    }

    /// Whether a ring would change anything.
    pub(super) fn listens(&self, now: Instant) -> bool {
        self.may_look() && self.timers.look > now
    }

    /// Whether nothing flies, or nobody waits for it any more.
    pub(super) fn is_drained(&self, now: Instant) -> bool {
        self.queues.flights_under_way() == 0 || now >= self.timers.grace
    }

    fn may_look(&self) -> bool {
        self.mode == RunnerMode::Sending
            && !self.errands.contains(&OutboxRequest::Read)
            && self.reader.lanes().next().is_some()
            && self.queues.has_room(self.options.window)
    }

    fn lease_if_due(&mut self, now: Instant) {
        if now < self.timers.lease || !self.errands.insert(OutboxRequest::Lease) {
            return;
        }
        let destination = self.destination.name().to_owned();
        let lease = RelayLease { destination, owner: self.owner, span: self.options.lease };
        self.steps.push(step::lease(&self.outbox, lease, now));
    }

    /// Gives back lanes of which everything that was sent has come back.
    fn release_what_is_left(&mut self) {
        let left = self.queues.left();
        if left.is_empty() || !self.errands.insert(OutboxRequest::Release) {
            return;
        }
        let fences = left.iter().filter_map(|lane| Some((*lane, self.reader.fence(*lane)?)));
        let (lanes, progress) = (fences.collect(), self.reader.progress());
        let name = self.destination.name();
        self.steps.push(step::release(&self.outbox, name, self.owner, lanes, progress));
    }

    fn acknowledge_if_due(&mut self, now: Instant) {
        if self.timers.acknowledge.is_none_or(|due| now < due)
            || self.errands.contains(&OutboxRequest::Acknowledge)
        {
            return;
        }
        self.timers.acknowledge = None;
        let progress = self.reader.progress();
        if !progress.is_empty() {
            self.errands.insert(OutboxRequest::Acknowledge);
            let name = self.destination.name();
            self.steps.push(step::acknowledge(&self.outbox, name, progress));
        }
    }

    fn send_what_waits(&mut self, now: Instant) {
        if now >= self.timers.send_until {
            return;
        }
        for flight in self.queues.flights(now, self.options.batch) {
            RelayCounters::count(&self.counters.batches, 1);
            self.steps.push(step::send(&self.sink, &self.opening, flight));
        }
    }

    fn look_if_due(&mut self, now: Instant) {
        if !self.may_look() || now < self.timers.look {
            return;
        }
        self.errands.insert(OutboxRequest::Read);
        self.looks += 1;
        self.timers.last_look = now;
        RelayCounters::count(&self.counters.looks, 1);
        let room = self.options.window.rows.saturating_sub(self.queues.len()).max(1);
        let limits =
            ReadLimits { rows: room.min(ReadLimits::default().rows), ..ReadLimits::default() };
        let look = self.reader.look(limits);
        self.steps.push(step::look(&self.outbox, self.destination.name(), self.looks, look));
    }

    fn retire_if_due(&mut self, now: Instant) {
        if now >= self.timers.retire && self.errands.insert(OutboxRequest::Retire) {
            self.timers.retire = now + self.options.retire_every;
            self.steps.push(step::retire(&self.outbox));
        }
    }
}
