//! The one time type. Nothing here reads a clock.

use std::{
    fmt,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

/// An instant of a store's clock, in microseconds since the Unix epoch.
///
/// Leases and expiry are compared only with instants of the same store. Safety never rests on
/// them: fences do that.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_core::Timestamp;
///
/// let later = Timestamp::ZERO.plus(Duration::from_secs(90));
/// assert_eq!(later.after(Timestamp::ZERO), Duration::from_secs(90));
/// assert_eq!(later.to_string(), "1970-01-01T00:01:30.000000Z");
/// ```
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

impl From<SystemTime> for Timestamp {
    /// What a reading of the system's clock says; before the epoch it is the epoch.
    fn from(time: SystemTime) -> Self {
        Self::ZERO.plus(time.duration_since(UNIX_EPOCH).unwrap_or_default())
    }
}

impl fmt::Display for Timestamp {
    /// In UTC, as RFC 3339 writes it: `2026-01-01T00:00:00.000000Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY: i64 = 86_400;
        let (seconds, micros) = (self.0.div_euclid(1_000_000), self.0.rem_euclid(1_000_000));
        let (days, of_day) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
        let (year, month, day) = civil(days);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
    }
}

/// Year, month and day of a day counted from the Unix epoch. Years are counted from March, so that
/// a leap day is the last of its year, in eras of 400 years, after which the calendar repeats.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// A span as whole microseconds, the unit every store keeps.
pub fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}
