//! The loss of power: what a process did to its files is recorded, and replayed on a disk that keeps
//! what was synced and of the rest whatever it likes. What is left is opened and held against what the
//! process had told.
//!
//! - [`plan`]: what is done, drawn from a seed, and what each task leaves behind;
//! - [`work`]: the process that does it, and tells before and after each task;
//! - [`recording`]: runs it with `recorder.c` loaded into it; [`log`]: what that writes;
//! - [`disk`]: a model of a disk, between any two calls;
//! - [`expectation`]: what must be found, by what was told; [`judge`]: whether it is;
//! - [`hunt`]: the moments at which the power is taken away;
//! - [`journal`]: all of this for the journal of a client;
//! - [`error`]: why the harness itself could not go on.

pub mod disk;
pub mod error;
pub mod expectation;
pub mod hunt;
pub mod journal;
pub mod judge;
pub mod log;
pub mod plan;
pub mod recording;
pub mod work;

pub use self::error::PowerError;
