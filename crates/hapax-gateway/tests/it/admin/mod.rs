//! The admin side, through its router.

mod changes;
mod health;
mod metrics;
mod operations;
mod tokens;
mod world;
