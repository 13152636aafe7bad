//! Examinations of servers that are known.
#![expect(clippy::unwrap_used, reason = "what a test did not expect ends it")]

mod relay;
mod wire;
mod zoo;
mod zoo_races;
