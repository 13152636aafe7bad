//! The gateway, through its public door.

mod admin;
mod client;
mod config;
mod keyless;
mod sign_in;
