//! Real servers, started and stopped.

mod postgres;
mod process;
mod roster;
