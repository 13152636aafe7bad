//! One limit over all attempts.

use std::time::Duration;

/// Until when an operation is wanted, whatever the number of its attempts.
///
/// Instants are time since a start of the caller's choice, on a clock that only goes forward: a wall
/// clock that is set neither shortens nor lengthens a deadline.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_core::retry::Deadline;
///
/// let secs = Duration::from_secs;
/// let deadline = Deadline::after(secs(0), secs(60));
/// assert_eq!(deadline.within(secs(5), secs(10)).left(secs(6)), secs(9));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(Duration);

impl Deadline {
    /// The deadline this long after `now`.
    pub fn after(now: Duration, span: Duration) -> Self {
        Self(now.saturating_add(span))
    }

    /// The earlier of this one and the one this long after `now`: inward, deadlines only shrink.
    #[must_use]
    pub fn within(self, now: Duration, span: Duration) -> Self {
        self.min(Self::after(now, span))
    }

    /// What is left of it; zero once it has passed.
    pub fn left(self, now: Duration) -> Duration {
        self.0.saturating_sub(now)
    }
}
