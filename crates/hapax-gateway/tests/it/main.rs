//! The gateway, through its public door.

mod admin;
mod client;
mod config;
mod sign_in;
