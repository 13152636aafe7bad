//! Examinations of servers that are known.

mod wire;
mod zoo;
mod zoo_races;
