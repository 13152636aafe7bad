//! A key whose first event was not taken.

use std::collections::VecDeque;

use hapax_core::outbox::Position;
use tokio::time::Instant;

use super::{
    options::{OnFailure, RelayOptions},
    queues::Item,
};
use crate::sink::Verdict;

/// A key that is stuck: its events wait here, in order, and not in the stream with the others.
#[derive(Debug, Default)]
pub(super) struct StuckKey {
    /// The event that was not taken last, and how often.
    pub(super) stuck: Stuck,
    pub(super) turn: StuckKeyTurn,
    pub(super) waiting: VecDeque<Item>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stuck {
    position: Position,
    pub(super) missed: u32,
    pub(super) refused: u32,
}

/// When the events of a stuck key are sent.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) enum StuckKeyTurn {
    /// They are being sent.
    #[default]
    Flying,
    /// Not before this instant.
    At(Instant),
}

/// What to do about an event that was not taken.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    Again(Instant),
    Park { reason: String, attempts: u32 },
}

impl Stuck {
    /// Counts one more failure and says what follows.
    pub(super) fn after(
        &mut self,
        position: Position,
        verdict: &Verdict,
        options: &RelayOptions,
        now: Instant,
    ) -> Remedy {
        if self.position != position {
            *self = Self { position, ..Self::default() };
        }
        let schedule = &options.schedule;
        let (reason, spent) = match verdict {
            Verdict::Refused(reason) => {
                self.refused += 1;
                (reason, self.refused >= options.refusals_max)
            }
            Verdict::Missed(reason) => {
                self.missed += 1;
                (reason, self.missed >= schedule.attempts_max())
            }
            Verdict::Taken | Verdict::Behind => return Remedy::Again(now),
        };
        let attempts = self.missed + self.refused;
        if spent && options.on_failure != OnFailure::Block {
            return Remedy::Park { reason: reason.clone(), attempts };
        }
        let cap = schedule.backoff().cap;
        let pause = schedule.until_deadline().pause(attempts, cap, fastrand::u64(..));
        Remedy::Again(now + pause.unwrap_or(cap))
    }
}
