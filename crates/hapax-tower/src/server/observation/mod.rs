//! Watching first: what would have been done with requests that pass as if nothing protected them.
//!
//! - `passage` passes a request on, byte for byte, and looks at it on the way;
//! - `foresight` finds out whose it is, under which key, with which content, and what that would have come to;
//! - `shadow` remembers what was seen, by digests, and lets the machine of the core decide;
//! - `observer` is what outlives a request: that memory, and who is told.

mod foresight;
mod observer;
mod passage;
mod shadow;
mod verdict;

pub(crate) use self::passage::pass_observed;
pub use self::{
    observer::{Observation, ObservedMemory, Observer},
    verdict::ObservedVerdict,
};
