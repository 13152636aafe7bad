/// What an audit forgives.
///
/// ```
/// use hapax_messaging::audit::{Audit, Rules};
///
/// // Every event has one effect, whatever arrived how often.
/// let rules = Rules { arrivals: false, effects: true, ..Rules::default() };
/// assert!(Audit::new().report(rules).is_clean());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a rule of its own, named where it is set"
)]
pub struct Rules {
    /// What arrived has to be looked at. Otherwise effects alone are.
    pub arrivals: bool,
    /// Every event has to have one effect.
    pub effects: bool,
    /// An event may arrive more than once, under the same id: what happens after a death.
    pub repeats: bool,
    /// What was never told as emitted may arrive: when the log goes back less far than the place.
    pub strangers: bool,
    /// Events may wait or be parked.
    pub waiting: bool,
}

impl Default for Rules {
    /// Everything has arrived, once or more often; nobody looks at effects.
    fn default() -> Self {
        Self { arrivals: true, effects: false, repeats: true, strangers: false, waiting: false }
    }
}

/// Why an event need not have arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Excuse {
    /// It was not yet its turn.
    Waiting,
    /// It was put aside.
    Parked,
}
