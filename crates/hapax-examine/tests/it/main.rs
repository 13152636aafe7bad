//! Examinations of servers that are known.

mod relay;
mod wire;
mod zoo;
mod zoo_races;
