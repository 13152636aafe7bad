//! Durations as they are said.

use std::time::Duration;

/// So many seconds.
///
/// ```
/// assert_eq!(hapax::days(7), hapax::hours(7 * 24));
/// assert_eq!(hapax::minutes(1), hapax::secs(60));
/// ```
pub const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// So many minutes.
///
/// ```
/// assert_eq!(hapax::minutes(2), hapax::secs(120));
/// ```
pub const fn minutes(count: u64) -> Duration {
    secs(count.saturating_mul(60))
}

/// So many hours.
///
/// ```
/// assert_eq!(hapax::hours(1), hapax::minutes(60));
/// ```
pub const fn hours(count: u64) -> Duration {
    minutes(count.saturating_mul(60))
}

/// So many days of 24 hours.
///
/// ```
/// assert_eq!(hapax::days(7), hapax::hours(168));
/// ```
pub const fn days(count: u64) -> Duration {
    hours(count.saturating_mul(24))
}
