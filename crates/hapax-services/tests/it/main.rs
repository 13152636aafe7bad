//! Real servers, started and stopped.

mod pgbouncer;
mod postgres;
mod process;
mod roster;
