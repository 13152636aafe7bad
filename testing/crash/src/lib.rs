//! Real crashes: processes killed at every named place and at random under load, and the check of
//! what they leave behind.
//!
//! - [`records`]: processes that run operations of one effect on a store; [`steps`]: the same for
//!   operations of several effects; [`client`]: the same for the client; [`messaging`]: the same for
//!   relays and consumers;
//! - [`hunt`]: what they share: victims are started and killed, episode after episode, until enough
//!   have died; [`victim`]: what every victim does;
//! - [`place`]: where one can be told to die; [`watched`]: the same around every call of a store;
//! - [`open`]: the store behind an address; [`error`]: what can go wrong.

pub mod client;
pub mod error;
pub mod hunt;
pub mod messaging;
pub mod open;
pub mod place;
pub mod records;
pub mod steps;
pub mod victim;
pub mod watched;

pub use self::error::CrashError;
