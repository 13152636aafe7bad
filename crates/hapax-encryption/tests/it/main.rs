//! An encrypted store, seen from both sides: as who has the keys, and as who reads the rows.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what a test did not expect ends it")]

mod erasing;
#[cfg(feature = "kms")]
mod kms;
mod places;
mod rotating;
mod world;
