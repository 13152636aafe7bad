//! The gateway, through its public door.

mod admin;
mod config;
