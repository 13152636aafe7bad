//! Luck, from a seed.

use std::time::Duration;

use fastrand::Rng;

/// Everything that is drawn in one simulation.
pub(super) struct Chance(Rng);

impl Chance {
    /// What this seed has in store for the simulation of this number.
    pub(super) fn new(seed: u64, number: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        Self(Rng::with_seed(rng.u64(..) ^ number))
    }

    /// For whoever takes a random number as an argument.
    pub(super) fn number(&mut self) -> u64 {
        self.0.u64(..)
    }

    /// Anything up to the span, all of it alike.
    pub(super) fn up_to(&mut self, span: Duration) -> Duration {
        span.mul_f64(self.0.f64())
    }

    /// About the mean, as far from it as a normal distribution with this deviation is.
    pub(super) fn about(&mut self, mean: Duration, deviation: Duration) -> Duration {
        // Twelve even draws have a variance of one, and need no logarithm that differs by platform.
        let normal = (0..12).map(|_| self.0.f64()).sum::<f64>() - 6.0;
        let seconds = mean.as_secs_f64() + deviation.as_secs_f64() * normal;
        Duration::from_secs_f64(seconds.abs())
    }
}
