//! One effect for each message, however often it is delivered.
//!
//! - `source`: [`Source`], what a broker's adapter implements.

mod source;

pub use hapax_core::inbox::{Partition, Place};

pub use self::source::{Arrived, Delivery, Disposition, Incoming, Receipt, Source, SourceError};
