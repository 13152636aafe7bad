//! Publishes what was committed, in order per key, and lets consumers act on it once.
//!
//! - [`sink`]: where events are sent, and what each place does with them.

pub mod sink;
