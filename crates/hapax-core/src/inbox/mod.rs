//! Messages that are delivered at least once, and acted on once.
//!
//! - `place`: [`Place`], where a message stands in an ordered log.

mod place;

pub use self::place::{Partition, Place};
