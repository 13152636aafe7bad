//! The loss of power, on real recordings; and whether the judge would notice if something were lost.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "in a test, what was not expected ends it")]

mod broken;
mod disk;
mod journal;
mod loss;
