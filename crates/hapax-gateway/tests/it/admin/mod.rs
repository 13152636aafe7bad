//! The admin side, through its router.

mod health;
mod metrics;
mod world;
