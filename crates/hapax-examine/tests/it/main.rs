//! Examinations of servers that are known.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what a test did not expect ends it")]

mod oracles;
mod process;
mod recovery;
mod zoo;
