//! An HTTP gateway that gives any API behind it one effect per key.
//!
//! - [`Config`] says what is protected and how;
//! - [`client::Client`] speaks to it, and knows whether anything was sent.

pub mod client;
pub mod config;

pub use self::config::Config;
