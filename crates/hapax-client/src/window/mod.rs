//! How long a server remembers a key, as it publishes it.
//!
//! A key that is sent after its server has forgotten it starts the operation a second time, so
//! nothing is sent then.

mod cache;
mod well_known;

pub(crate) use self::cache::{RetentionWindow, Windows};
