//! Examinations of servers that are known.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what a test did not expect ends it")]

mod conditions;
mod consent;
mod controls;
mod grade;
mod openapi;
mod oracles;
mod played_api;
mod process;
mod profiles;
mod recovery;
mod relay;
mod report;
mod request;
mod wire;
mod zoo;
mod zoo_races;
