//! How long to wait before the next attempt.

use std::time::Duration;

use super::random::{again, part};
use crate::limits::{
    RETRY_AFTER_MAX, RETRY_ATTEMPTS_MAX, RETRY_BASE_MIN, RETRY_CAP_MAX, RETRY_SPREAD_DIVISOR,
};

/// How often an operation is tried, and how long it waits in between. Valid by construction.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_core::retry::{Backoff, Failure, Jitter, Next, Schedule};
///
/// let (base, cap) = (Duration::from_millis(100), Duration::from_secs(20));
/// let schedule = Schedule::new(Backoff { jitter: Jitter::None, base, cap }, 5)?;
/// let left = Duration::from_secs(60);
/// let failure = Failure { attempt: 2, previous: base, told: None, left };
/// assert_eq!(schedule.next(failure, 0), Next::Wait(2 * base));
/// # Ok::<(), hapax_core::retry::InvalidSchedule>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    backoff: Backoff,
    attempts_max: u32,
}

/// How pauses grow.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_core::retry::{Backoff, Jitter, Schedule};
///
/// let base = Duration::from_millis(250);
/// let backoff = Backoff { jitter: Jitter::Equal, base, cap: 40 * base };
/// assert_eq!(Schedule::new(backoff, 3)?.backoff(), backoff);
/// # Ok::<(), hapax_core::retry::InvalidSchedule>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// How chance spreads the pauses of many clients.
    pub jitter: Jitter,
    /// What the first pause is drawn from; it doubles with every attempt.
    pub base: Duration,
    /// What a pause of our own choice never exceeds.
    pub cap: Duration,
}

/// How chance spreads the pauses of many clients that failed together.
///
/// ```
/// use hapax_core::retry::{Jitter, Schedule};
///
/// assert_eq!(Schedule::default().backoff().jitter, Jitter::Full);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Jitter {
    /// Anything from nothing up to the doubled base: the least work for whoever is asked.
    Full,
    /// At least half of the doubled base.
    Equal,
    /// Anything from the base up to three times the previous pause.
    Decorrelated,
    /// The doubled base itself: clients that failed together come back together.
    None,
}

/// An attempt that failed, and what is known about the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// How many attempts were made, this one included.
    pub attempt: u32,
    /// The pause before this attempt; zero before the first.
    pub previous: Duration,
    /// What the other side asked us to wait, as a span from now.
    pub told: Option<Duration>,
    /// What is left of the operation's [`Deadline`](super::Deadline).
    pub left: Duration,
}

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Try again after this pause, if the budget and the breaker agree.
    Wait(Duration),
    /// Tell the caller.
    GiveUp(Why),
}

/// Why there is no next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Why {
    /// All attempts were made.
    AttemptsUsedUp,
    /// The pause would outlast the deadline, so it is not begun.
    DeadlineTooNear,
}

impl Schedule {
    /// A schedule of at most `attempts_max` attempts, the first included.
    pub fn new(backoff: Backoff, attempts_max: u32) -> Result<Self, InvalidSchedule> {
        let Backoff { base, cap, .. } = backoff;
        if base < RETRY_BASE_MIN || base > cap {
            return Err(InvalidSchedule::Base { base, cap });
        }
        if cap > RETRY_CAP_MAX {
            return Err(InvalidSchedule::Cap { cap });
        }
        if !(1..=RETRY_ATTEMPTS_MAX).contains(&attempts_max) {
            return Err(InvalidSchedule::Attempts { attempts_max });
        }
        Ok(Self { backoff, attempts_max })
    }

    /// The same pauses, and as many attempts as there is time for.
    #[must_use]
    pub fn until_deadline(self) -> Self {
        Self { attempts_max: RETRY_ATTEMPTS_MAX, ..self }
    }

    /// How the pauses grow.
    pub fn backoff(&self) -> Backoff {
        self.backoff
    }

    /// How many attempts there are at most, the first included.
    pub fn attempts_max(&self) -> u32 {
        self.attempts_max
    }

    /// What follows a failed attempt: a pause that fits the time left, or the end.
    ///
    /// A pause is never shorter than what the other side asked for, up to
    /// [`RETRY_AFTER_MAX`]; chance only makes it longer.
    pub fn next(&self, failure: Failure, random: u64) -> Next {
        let Failure { attempt, previous, told, left } = failure;
        let Some(pause) = self.pause(attempt, previous, random) else {
            return Next::GiveUp(Why::AttemptsUsedUp);
        };
        let told = told.map_or(Duration::ZERO, |told| self.spread(told, again(random)));
        fitting(pause.max(told), left)
    }

    /// What follows when an earlier attempt is still being worked on: ask again as told.
    ///
    /// It is no failure, so it uses up no attempt, and the deadline alone ends it. Without a word
    /// from the other side the pause is drawn between the base and twice the base.
    pub fn until_finished(&self, told: Option<Duration>, left: Duration, random: u64) -> Next {
        let base = self.backoff.base;
        let told = told.map_or(Duration::ZERO, |told| self.spread(told, again(random)));
        fitting(told.max(base + part(base, random)), left)
    }

    /// The pause after so many attempts; `None` when all were made.
    ///
    /// `previous` is the pause before the last attempt, which only [`Jitter::Decorrelated`] uses.
    pub fn pause(&self, attempt: u32, previous: Duration, random: u64) -> Option<Duration> {
        if attempt >= self.attempts_max {
            return None;
        }
        let Backoff { jitter, base, cap } = self.backoff;
        let doubled = self.doubled(attempt);
        Some(match jitter {
            Jitter::Full => part(doubled, random),
            Jitter::Equal => doubled / 2 + part(doubled / 2, random),
            Jitter::Decorrelated => {
                let longest = previous.clamp(base, cap) * 3;
                cap.min(base + part(longest - base, random))
            }
            Jitter::None => doubled,
        })
    }

    /// The base, doubled with every attempt after the first, up to the cap.
    fn doubled(&self, attempt: u32) -> Duration {
        let Backoff { base, cap, .. } = self.backoff;
        let factor = 1_u32.checked_shl(attempt.saturating_sub(1)).unwrap_or(u32::MAX);
        base.saturating_mul(factor).min(cap)
    }

    /// What was asked for, within bounds, and a little more so that not all come back at once.
    fn spread(&self, told: Duration, random: u64) -> Duration {
        let told = told.min(RETRY_AFTER_MAX);
        match self.backoff.jitter {
            Jitter::Full | Jitter::Equal | Jitter::Decorrelated => {
                told + part((told / RETRY_SPREAD_DIVISOR).max(self.backoff.base), random)
            }
            Jitter::None => told,
        }
    }
}

impl Default for Schedule {
    /// Full jitter from 100 ms to 20 s, five attempts.
    fn default() -> Self {
        let (base, cap) = (Duration::from_millis(100), Duration::from_secs(20));
        Self { backoff: Backoff { jitter: Jitter::Full, base, cap }, attempts_max: 5 }
    }
}

fn fitting(pause: Duration, left: Duration) -> Next {
    if pause < left { Next::Wait(pause) } else { Next::GiveUp(Why::DeadlineTooNear) }
}

/// Why a schedule was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidSchedule {
    /// The base is too short, or longer than the cap.
    #[error("a base of {base:?} is outside {RETRY_BASE_MIN:?} to the cap of {cap:?}")]
    Base {
        /// The base asked for.
        base: Duration,
        /// The cap asked for.
        cap: Duration,
    },
    /// The cap is too long.
    #[error("a cap of {cap:?} is longer than {RETRY_CAP_MAX:?}")]
    Cap {
        /// The cap asked for.
        cap: Duration,
    },
    /// The number of attempts is out of bounds.
    #[error("{attempts_max} attempts are outside 1 to {RETRY_ATTEMPTS_MAX}")]
    Attempts {
        /// The number asked for.
        attempts_max: u32,
    },
}
