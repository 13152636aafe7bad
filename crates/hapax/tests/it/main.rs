//! The facade, as a service uses it.
#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "what a test did not expect ends it")]

#[cfg(feature = "tower")]
mod layer;
mod once;
mod payment;
mod restart;
#[cfg(all(feature = "signatures", feature = "tower"))]
mod vectors;
