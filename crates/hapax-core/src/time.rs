//! The one time type. Nothing here reads a clock.

use std::time::Duration;

/// An instant of a store's clock, in microseconds since the Unix epoch.
///
/// Leases and expiry are compared only with instants of the same store. Safety never rests on
/// them: fences do that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// The epoch itself; also what a lease reads as when there is none.
    pub const ZERO: Self = Self(0);

    /// The instant this many microseconds after the Unix epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// The instant `span` later; stops at the end of time instead of wrapping.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }

    /// The instant `span` earlier; stops at the beginning of time instead of wrapping.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(micros(span)))
    }

    /// How long it is from `now` until this instant; zero if it has passed.
    pub fn after(self, now: Self) -> Duration {
        let span = self.0.saturating_sub(now.0);
        Duration::from_micros(u64::try_from(span).unwrap_or(0))
    }
}

/// A span as whole microseconds, the unit every store keeps.
pub fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}
