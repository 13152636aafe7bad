//! The service at the bottom, which all the others need.

use std::{collections::VecDeque, time::Duration};

use hapax::retry::Deadline;

use super::world::StormAttempt;

/// What the service can do, and what goes wrong with it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strength {
    /// How many calls it works on at a time.
    pub(super) workers: u32,
    /// How long it works on each.
    pub(super) service: Duration,
    /// How many calls wait for a worker; more are refused.
    pub(super) waiting_max: usize,
    pub(super) fault: InjectedFault,
}

/// What goes wrong, from one time until another.
#[derive(Debug, Clone, Copy)]
pub(super) struct InjectedFault {
    pub(super) kind: FaultKind,
    pub(super) from: Duration,
    pub(super) until: Duration,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum FaultKind {
    /// Every call is refused at once.
    Refuses,
    /// Calls are taken and never answered.
    Hangs,
    /// Calls are taken and wait, because nobody works.
    Stalls,
}

/// A call that arrived.
#[derive(Debug, Clone, Copy)]
pub(super) struct ArrivedCall {
    pub(super) attempt: StormAttempt,
    /// Until when its caller said that it wants the answer, if callers say so.
    pub(super) wanted: Option<Deadline>,
}

/// What becomes of a call that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallIntake {
    /// A worker begins with it.
    Begun,
    Waits,
    Refused,
    /// Nobody will ever answer it.
    Lost,
}

pub(super) struct Dependency {
    strength: Strength,
    working: u32,
    waiting: VecDeque<ArrivedCall>,
}

impl Dependency {
    pub(super) fn new(strength: Strength) -> Self {
        Self { strength, working: 0, waiting: VecDeque::new() }
    }

    pub(super) fn strength(&self) -> Strength {
        self.strength
    }

    pub(super) fn arrive(&mut self, now: Duration, job: ArrivedCall) -> CallIntake {
        let InjectedFault { kind, from, until } = self.strength.fault;
        let trouble = (from..until).contains(&now).then_some(kind);
        match trouble {
            Some(FaultKind::Refuses) => CallIntake::Refused,
            Some(FaultKind::Hangs) => CallIntake::Lost,
            None if self.working < self.strength.workers => {
                self.working += 1;
                CallIntake::Begun
            }
            Some(FaultKind::Stalls) | None => {
                if self.waiting.len() < self.strength.waiting_max {
                    self.waiting.push_back(job);
                    CallIntake::Waits
                } else {
                    CallIntake::Refused
                }
            }
        }
    }

    /// A worker is done with a call.
    pub(super) fn finish(&mut self) {
        self.working -= 1;
    }

    /// The next call for a worker that is free. What nobody wants any more is put aside.
    pub(super) fn begin(&mut self, now: Duration) -> Option<ArrivedCall> {
        let InjectedFault { kind, from, until } = self.strength.fault;
        let stalled = matches!(kind, FaultKind::Stalls) && (from..until).contains(&now);
        if stalled || self.working >= self.strength.workers {
            return None;
        }
        let is_wanted =
            |job: &ArrivedCall| job.wanted.is_none_or(|wanted| !wanted.left(now).is_zero());
        let job = std::iter::from_fn(|| self.waiting.pop_front()).find(is_wanted)?;
        self.working += 1;
        Some(job)
    }
}
