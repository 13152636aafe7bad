//! Random numbers as arguments.

use std::time::Duration;

/// The part of `span` that a random number stands for: from nothing up to, not including, all of it.
pub(super) fn part(span: Duration, random: u64) -> Duration {
    let nanos = (span.as_nanos() * u128::from(random)) >> u64::BITS;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// The same number, scrambled: a second draw where only one was given.
pub(super) fn again(random: u64) -> u64 {
    let mixed = (random ^ (random >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed ^ (mixed >> 29)
}
