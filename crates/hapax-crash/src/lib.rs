//! Real crashes: processes killed at every named place and at random under load, and the check of
//! what they leave behind.
//!
//! - [`victim`]: a process that asks for many operations at once on a real store, until it dies;
//! - [`upstream`]: where its effects happen, outside of the store, one file per key;
//! - [`journal`]: what its clients were told, line by line;
//! - [`place`]: where it can be told to die; [`watched`]: the same around every call of a store;
//! - [`drive`]: starts victims, kills them, lets others recover, until enough have died;
//! - [`check`]: what must be true afterwards, for every key; [`finding`]: what was not;
//! - [`steps`]: the same for operations of several effects; [`client`]: the same for the client;
//!   [`messaging`]: the same for relays and consumers;
//! - [`work`]: the operations; [`open`]: the store behind an address; [`error`]: what can go wrong.
//!
//! A journal line or an effect is one `write` to a file opened for appending. The kernel keeps it
//! when the process is killed, and effects are synced as well.

pub mod check;
pub mod client;
pub mod drive;
pub mod error;
pub mod finding;
pub mod journal;
pub mod messaging;
pub mod open;
pub mod place;
pub mod steps;
pub mod upstream;
pub mod victim;
pub mod watched;
pub mod work;
mod workers;

pub use self::error::CrashError;
