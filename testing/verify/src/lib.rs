//! What judges Hapax: the store conformance suite, the simulator and the history checker.

pub mod checker;
pub mod conformance;
pub mod history;
pub mod sim;
