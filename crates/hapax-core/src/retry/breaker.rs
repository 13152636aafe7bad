//! Whether a destination is asked at all.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{
    random::part,
    window::{Count, SlidingWindow},
};
use crate::limits::{BREAKER_CALLS_MAX, BREAKER_SPAN_MAX, BREAKER_SPAN_MIN};

/// Stops calls to a destination that fails, and lets them come back slowly.
///
/// Every call asks for a [`Pass`] and [reports](Self::report) how it ended; a call that is never
/// reported counts as nothing. All `now` are time since one start of the caller's choice.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_core::retry::{Breaker, BreakerOptions, BreakerPosition, Health};
///
/// let options = BreakerOptions { calls_min: 2, ..BreakerOptions::default() };
/// let (breaker, now) = (Breaker::new(options)?, Duration::ZERO);
/// for _ in 0..2 {
///     let pass = breaker.admit(now, 0)?;
///     breaker.report(now, pass, Health::Bad);
/// }
/// assert_eq!(breaker.position(now), BreakerPosition::Open);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Breaker {
    options: BreakerOptions,
    inner: Mutex<Inner>,
}

/// When a breaker opens, and how it closes again.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_core::retry::{Breaker, BreakerOptions};
///
/// let open_for = Duration::from_secs(30);
/// let breaker = Breaker::new(BreakerOptions { open_for, ..BreakerOptions::default() })?;
/// # drop(breaker);
/// # Ok::<(), hapax_core::retry::InvalidBreaker>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerOptions {
    /// How far back calls are counted.
    pub window: Duration,
    /// How many calls of the window are needed to judge.
    pub calls_min: u32,
    /// It opens when at least this many calls of a hundred failed.
    pub failures_percent: u32,
    /// How long nothing is let through; chance adds up to a quarter.
    pub open_for: Duration,
    /// How many calls in a row have to succeed after that.
    pub trials: u32,
    /// How long it then takes until all calls are let through again.
    pub ramp: Duration,
}

/// Where a breaker stands. Half open is [`Trial`](Self::Trial) and then [`Ramp`](Self::Ramp).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BreakerPosition {
    /// Every call is let through.
    Closed,
    /// No call is let through.
    Open,
    /// A few calls are let through, to see.
    Trial,
    /// A share of the calls that grows with time is let through.
    Ramp,
}

/// A call that was let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a call that is not reported cannot open or close the breaker"]
pub struct Pass {
    /// What the breaker went through before: news of a call from before a change is no news.
    era: u64,
    random: u64,
}

/// What the end of a call says about its destination.
///
/// A refusal that the caller earned is a good sign: somebody was there to refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Health {
    /// It answered.
    Good,
    /// It failed, or did not answer.
    Bad,
}

/// The call was not let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("calls to this destination fail; the next is let through in {wait:?}")]
pub struct Refused {
    /// When it makes sense to ask again.
    pub wait: Duration,
}

#[derive(Debug)]
struct Inner {
    state: BreakerState,
    era: u64,
    window: SlidingWindow,
}

#[derive(Debug, Clone, Copy)]
enum BreakerState {
    Closed,
    Open {
        until: Duration,
    },
    /// Trials whose end nobody reported are replaced after a while.
    Trial {
        begun: u32,
        good: u32,
        until: Duration,
    },
    Ramp {
        since: Duration,
    },
}

impl Breaker {
    /// A closed breaker.
    pub fn new(options: BreakerOptions) -> Result<Self, InvalidBreaker> {
        options.check()?;
        Ok(Self::with(options))
    }

    fn with(options: BreakerOptions) -> Self {
        let window = SlidingWindow::new(options.window);
        Self { options, inner: Mutex::new(Inner { state: BreakerState::Closed, era: 0, window }) }
    }

    /// Asks whether a call may be made. `random` decides who goes first when the breaker closes.
    pub fn admit(&self, now: Duration, random: u64) -> Result<Pass, Refused> {
        let mut inner = self.lock();
        inner.advance(now, &self.options);
        let admitted = match &mut inner.state {
            BreakerState::Closed => Ok(()),
            BreakerState::Open { until } => Err(until.saturating_sub(now)),
            BreakerState::Trial { begun, until, .. } => {
                if *begun < self.options.trials {
                    *begun += 1;
                    Ok(())
                } else {
                    Err(until.saturating_sub(now))
                }
            }
            BreakerState::Ramp { since } => {
                // What has passed and one part more: the first moment lets some through, too.
                let share = now.saturating_sub(*since) + self.options.ramp / RAMP_PARTS;
                let drawn = part(self.options.ramp, random);
                if drawn < share { Ok(()) } else { Err(self.options.ramp / RAMP_PARTS) }
            }
        };
        admitted.map(|()| Pass { era: inner.era, random }).map_err(|wait| Refused { wait })
    }

    /// Reports how a call ended.
    pub fn report(&self, now: Duration, pass: Pass, health: Health) {
        let mut inner = self.lock();
        inner.advance(now, &self.options);
        if pass.era == inner.era {
            inner.count(now, pass.random, health, &self.options);
        }
    }

    /// Where it stands now.
    pub fn position(&self, now: Duration) -> BreakerPosition {
        let mut inner = self.lock();
        inner.advance(now, &self.options);
        match inner.state {
            BreakerState::Closed => BreakerPosition::Closed,
            BreakerState::Open { .. } => BreakerPosition::Open,
            BreakerState::Trial { .. } => BreakerPosition::Trial,
            BreakerState::Ramp { .. } => BreakerPosition::Ramp,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Breaker {
    /// A closed breaker with the default options.
    fn default() -> Self {
        Self::with(BreakerOptions::default())
    }
}

/// A ramp begins with one part of this many.
const RAMP_PARTS: u32 = 10;

impl Inner {
    /// What time alone changes.
    fn advance(&mut self, now: Duration, options: &BreakerOptions) {
        match self.state {
            BreakerState::Open { until } if now >= until => {
                let until = now.saturating_add(options.open_for);
                self.turn(BreakerState::Trial { begun: 0, good: 0, until });
            }
            // The same era: the end of a slow trial is still news.
            BreakerState::Trial { good, until, .. } if now >= until => {
                let until = now.saturating_add(options.open_for);
                self.state = BreakerState::Trial { begun: 0, good, until };
            }
            BreakerState::Ramp { since } if now.saturating_sub(since) >= options.ramp => {
                self.state = BreakerState::Closed;
            }
            BreakerState::Closed
            | BreakerState::Open { .. }
            | BreakerState::Trial { .. }
            | BreakerState::Ramp { .. } => {}
        }
    }

    /// What the end of a call changes.
    fn count(&mut self, now: Duration, random: u64, health: Health, options: &BreakerOptions) {
        match (&mut self.state, health) {
            (BreakerState::Open { .. }, _) => {}
            (BreakerState::Trial { good, .. }, Health::Good) => {
                *good += 1;
                if *good >= options.trials {
                    self.turn(BreakerState::Ramp { since: now });
                }
            }
            (BreakerState::Trial { .. }, Health::Bad) => self.open(now, random, options),
            (BreakerState::Closed | BreakerState::Ramp { .. }, Health::Good) => {
                let slot = self.window.at(now);
                slot.good = slot.good.saturating_add(1);
            }
            (BreakerState::Closed | BreakerState::Ramp { .. }, Health::Bad) => {
                let slot = self.window.at(now);
                slot.bad = slot.bad.saturating_add(1);
                if options.too_many(self.window.sum()) {
                    self.open(now, random, options);
                }
            }
        }
    }

    fn open(&mut self, now: Duration, random: u64, options: &BreakerOptions) {
        let more = part(options.open_for / 4, random);
        self.turn(BreakerState::Open { until: now.saturating_add(options.open_for + more) });
    }

    /// Begins anew: calls from before are not heard any more.
    fn turn(&mut self, state: BreakerState) {
        self.state = state;
        self.era += 1;
        self.window.clear();
    }
}

impl BreakerOptions {
    fn too_many(&self, Count { good, bad }: Count) -> bool {
        let (bad, all) = (u64::from(bad), u64::from(good) + u64::from(bad));
        all >= u64::from(self.calls_min) && bad * 100 >= all * u64::from(self.failures_percent)
    }

    fn check(&self) -> Result<(), InvalidBreaker> {
        for span in [self.window, self.open_for, self.ramp] {
            if !(BREAKER_SPAN_MIN..=BREAKER_SPAN_MAX).contains(&span) {
                return Err(InvalidBreaker::Span { span });
            }
        }
        for calls in [self.calls_min, self.trials] {
            if !(1..=BREAKER_CALLS_MAX).contains(&calls) {
                return Err(InvalidBreaker::Calls { calls });
            }
        }
        if !(1..=100).contains(&self.failures_percent) {
            return Err(InvalidBreaker::Percent { percent: self.failures_percent });
        }
        Ok(())
    }
}

impl Default for BreakerOptions {
    /// Half of at least 20 calls in 10 s; 5 s open, 3 trials, a ramp of 10 s.
    fn default() -> Self {
        Self {
            window: Duration::from_secs(10),
            calls_min: 20,
            failures_percent: 50,
            open_for: Duration::from_secs(5),
            trials: 3,
            ramp: Duration::from_secs(10),
        }
    }
}

/// Why a breaker was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidBreaker {
    /// A span is out of bounds.
    #[error("a span of {span:?} is outside {BREAKER_SPAN_MIN:?} to {BREAKER_SPAN_MAX:?}")]
    Span {
        /// The span asked for.
        span: Duration,
    },
    /// A number of calls is out of bounds.
    #[error("{calls} calls are outside 1 to {BREAKER_CALLS_MAX}")]
    Calls {
        /// The number asked for.
        calls: u32,
    },
    /// The share of failures is none.
    #[error("{percent} percent of failures are outside 1 to 100")]
    Percent {
        /// The share asked for.
        percent: u32,
    },
}
