//! What judges Hapax: the store conformance suite, the simulator and the history checker.

pub mod conformance;
