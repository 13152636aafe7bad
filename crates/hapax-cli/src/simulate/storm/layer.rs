//! A service that calls the one below, and how careful it is about that.

use hapax::retry::{Breaker, BreakerOptions, Budget, Schedule, Terms};

use super::super::SimulateError;

/// How careful callers are.
#[derive(Debug, Clone, Copy)]
pub(super) struct Care {
    pub(super) retries: Retries,
    pub(super) budget: Option<Terms>,
    pub(super) breaker: Option<BreakerOptions>,
    pub(super) deadlines: Deadlines,
}

/// Who tries again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Retries {
    EveryLayer,
    /// It tells the others not to.
    FirstLayer,
    Nobody,
}

/// Whether a caller says until when it wants an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deadlines {
    /// Every layer has a deadline of its own.
    Own,
    /// The time left is told to the layer below, and work that nobody wants is not begun.
    Shrinking,
}

impl Care {
    /// Every layer retries, and nothing holds it back.
    pub(super) const NONE: Self = Self {
        retries: Retries::EveryLayer,
        budget: None,
        breaker: None,
        deadlines: Deadlines::Own,
    };
}

/// Layers of services, each of which calls the one below.
pub(super) struct Pile {
    pub(super) layers: Vec<Layer>,
    pub(super) deadlines: Deadlines,
}

/// One layer of a pile.
pub(super) struct Layer {
    /// `None` if it makes one attempt.
    pub(super) schedule: Option<Schedule>,
    pub(super) budget: Option<Budget>,
    pub(super) breaker: Option<Breaker>,
}

impl Pile {
    /// So many layers that are this careful.
    pub(super) fn new(layers: u32, care: Care, schedule: Schedule) -> Result<Self, SimulateError> {
        let layer = |at| {
            let retries = match care.retries {
                Retries::EveryLayer => true,
                Retries::FirstLayer => at == 0,
                Retries::Nobody => false,
            };
            Ok(Layer {
                schedule: retries.then_some(schedule),
                budget: care.budget.map(Budget::new).transpose()?,
                breaker: care.breaker.map(Breaker::new).transpose()?,
            })
        };
        let layers = (0..layers).map(layer).collect::<Result<_, SimulateError>>()?;
        Ok(Self { layers, deadlines: care.deadlines })
    }
}
