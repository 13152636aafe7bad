//! The layer, through its public door: an axum router on the memory store, and real connections.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::wildcard_enum_match_arm,
    reason = "these are tests: what they did not expect ends them"
)]

mod bodies;
mod canonical;
mod client;
mod compared;
mod connections;
mod deadlines;
mod derived_keys;
mod dialects;
mod doubt;
mod handled;
mod hearing;
mod in_flight;
mod keys;
mod later;
mod limits;
mod multipart;
mod observing;
mod one_layer;
mod pages;
mod policy;
mod probing;
mod recovery;
mod replay;
mod script;
mod services;
mod spellings;
mod stores;
mod tenants;
mod world;
