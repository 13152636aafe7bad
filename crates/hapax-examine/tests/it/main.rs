//! Examinations of servers that are known.
#![expect(clippy::unwrap_used, reason = "what a test did not expect ends it")]

mod consent;
mod grade;
mod openapi;
mod oracles;
mod process;
mod recovery;
mod report;
mod zoo;
