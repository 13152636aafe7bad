//! The facade, as a service uses it.
#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "what a test did not expect ends it")]

mod payment;
mod restart;
