//! Examinations of servers that are known.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what a test did not expect ends it")]

mod relay;
mod wire;
mod zoo;
mod zoo_races;
