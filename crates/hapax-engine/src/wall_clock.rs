//! The time of day.

use std::time::SystemTime;

/// The time of day, for what is told to others and for stores that have no clock of their own.
///
/// No deadline or pause is measured by it: it can be set.
///
/// ```
/// use hapax_core::{Salt, memory};
/// use hapax_engine::wall_clock;
///
/// let store = memory::Store::new(Salt::from_bytes([7; 32]), || wall_clock().into());
/// # drop(store);
/// ```
#[expect(clippy::disallowed_methods, reason = "the one edge where the time of day comes in")]
pub fn wall_clock() -> SystemTime {
    SystemTime::now()
}
