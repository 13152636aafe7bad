//! Named places where a test makes things go wrong.

use std::{fmt, sync::Arc};

/// Decides at each named place whether to fail there; by default it never does, and costs one
/// branch.
///
/// A store and the engine carry one each, so tests that run side by side do not disturb each other.
/// The crash harness gives one that kills the process.
///
/// ```
/// use hapax_core::{Faults, Injected};
///
/// let faults = Faults::new(|place| match place {
///     "before-commit" => Err(Injected { place }),
///     _ => Ok(()),
/// });
/// assert!(faults.at("before-commit").is_err() && faults.at("after-commit").is_ok());
/// ```
#[derive(Clone, Default)]
pub struct Faults(Option<Arc<Decide>>);

type Decide = dyn Fn(&'static str) -> Result<(), Injected> + Send + Sync;

impl Faults {
    /// Asks `decide` at every place.
    pub fn new(
        decide: impl Fn(&'static str) -> Result<(), Injected> + Send + Sync + 'static,
    ) -> Self {
        Self(Some(Arc::new(decide)))
    }

    /// Fails here if a test wants it to.
    pub fn at(&self, place: &'static str) -> Result<(), Injected> {
        self.0.as_ref().map_or(Ok(()), |decide| decide(place))
    }
}

impl fmt::Debug for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Faults").field(&self.0.is_some()).finish()
    }
}

/// A failure a test asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fault was injected at {place}")]
pub struct Injected {
    /// Where.
    pub place: &'static str,
}
