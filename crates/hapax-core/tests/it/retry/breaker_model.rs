//! Every history of a few events, against what a breaker is in plain words.

use std::time::Duration;

use hapax_core::retry::{Breaker, BreakerOptions, BreakerPosition, Health};

use super::ms;

const EVENTS: [Event; 4] = [Event::Good, Event::Bad, Event::Short, Event::Long];
const LENGTH: u32 = 8;

/// A call that ends at once, or time that passes.
#[derive(Debug, Clone, Copy)]
enum Event {
    Good,
    Bad,
    /// Shorter than anything that times a change.
    Short,
    /// As long as it stays open and as its ramp takes, longer than its window.
    Long,
}

const SHORT: Duration = ms(1);
const LONG: Duration = ms(1000);

fn options() -> BreakerOptions {
    BreakerOptions {
        window: ms(900),
        calls_min: 2,
        failures_percent: 100,
        open_for: LONG,
        trials: 2,
        ramp: LONG,
    }
}

/// The breaker in plain words, for these options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Model {
    Closed { good: u32, bad: u32 },
    Open { waited: Duration },
    Trial { good: u32, left: u32, waited: Duration },
    Ramp { good: u32, bad: u32, waited: Duration },
}

impl Model {
    const CLOSED: Self = Self::Closed { good: 0, bad: 0 };
    const OPEN: Self = Self::Open { waited: Duration::ZERO };

    fn position(self) -> BreakerPosition {
        match self {
            Self::Closed { .. } => BreakerPosition::Closed,
            Self::Open { .. } => BreakerPosition::Open,
            Self::Trial { .. } => BreakerPosition::Trial,
            Self::Ramp { .. } => BreakerPosition::Ramp,
        }
    }

    fn call(self, health: Health) -> Self {
        match (self, health) {
            (Self::Closed { good, bad }, Health::Good) => Self::Closed { good: good + 1, bad },
            (
                Self::Closed { good: 0, bad: 1 } | Self::Ramp { good: 0, bad: 1, .. },
                Health::Bad,
            ) => Self::OPEN,
            (Self::Closed { good, bad }, Health::Bad) => Self::Closed { good, bad: bad + 1 },
            (Self::Ramp { good, bad, waited }, Health::Good) => {
                Self::Ramp { good: good + 1, bad, waited }
            }
            (Self::Ramp { good, bad, waited }, Health::Bad) => {
                Self::Ramp { good, bad: bad + 1, waited }
            }
            (Self::Open { .. } | Self::Trial { left: 0, .. }, _) => self,
            (Self::Trial { good: 1, .. }, Health::Good) => {
                Self::Ramp { good: 0, bad: 0, waited: Duration::ZERO }
            }
            (Self::Trial { good, left, waited }, Health::Good) => {
                Self::Trial { good: good + 1, left: left - 1, waited }
            }
            (Self::Trial { .. }, Health::Bad) => Self::OPEN,
        }
    }

    fn pass(self, time: Duration) -> Self {
        let forgets = time == LONG;
        match self {
            Self::Closed { .. } if forgets => Self::CLOSED,
            Self::Closed { .. } => self,
            Self::Open { waited } if waited + time < LONG => Self::Open { waited: waited + time },
            Self::Open { .. } => Self::Trial { good: 0, left: 2, waited: Duration::ZERO },
            Self::Trial { good, left, waited } if waited + time < LONG => {
                Self::Trial { good, left, waited: waited + time }
            }
            Self::Trial { good, .. } => Self::Trial { good, left: 2, waited: Duration::ZERO },
            Self::Ramp { good, bad, waited } if waited + time < LONG => {
                Self::Ramp { good, bad, waited: waited + time }
            }
            Self::Ramp { .. } => Self::CLOSED,
        }
    }
}

#[test]
fn every_short_history_is_what_the_plain_words_say() {
    for number in 0..EVENTS.len().pow(LENGTH) {
        let history = (0..LENGTH).map(|at| EVENTS[number / EVENTS.len().pow(at) % EVENTS.len()]);
        check(&history.collect::<Vec<_>>());
    }
}

fn check(history: &[Event]) {
    let breaker = Breaker::new(options()).unwrap();
    let mut model = Model::CLOSED;
    let mut now = Duration::ZERO;
    for event in history {
        let call = |health| {
            // The draw of zero is let through by any share of a ramp.
            if let Ok(pass) = breaker.admit(now, 0) {
                breaker.report(now, pass, health);
            }
            model.call(health)
        };
        (model, now) = match event {
            Event::Good => (call(Health::Good), now),
            Event::Bad => (call(Health::Bad), now),
            Event::Short => (model.pass(SHORT), now + SHORT),
            Event::Long => (model.pass(LONG), now + LONG),
        };
        assert_eq!(breaker.position(now), model.position(), "{history:?} at {now:?}");
    }
}
