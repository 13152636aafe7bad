//! Where a message stands.

use std::fmt;

/// Where a message stands in an ordered log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// In which of its partitions.
    pub partition: Partition,
    /// Where in it: growing, never given twice.
    pub offset: i64,
}

/// A part of an ordered log that has one consumer at a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// The topic or stream.
    pub source: String,
    /// Its number.
    pub number: i32,
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.source, self.number)
    }
}
