//! An HTTP gateway that gives any API behind it one effect per key.
//!
//! - [`Config`] says what is protected and how.

pub mod config;

pub use self::config::Config;
