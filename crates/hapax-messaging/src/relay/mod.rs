//! Sends what was committed, in order per key, until it was taken.
