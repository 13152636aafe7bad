//! What a gateway can be told, and what it refuses to be told.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "these are tests: what they did not expect ends them"
)]

mod asking;
mod docs;
mod faults;
mod files;
mod fuzz;
mod good;
mod tenants;
mod tokens;
mod world;

use std::path::Path;

use hapax_gateway::{
    Config,
    config::{ConfigError, Overrides},
};

/// Reads a file of this text that stands in the working directory.
fn read(text: &str) -> Result<Config, ConfigError> {
    Config::parse(Path::new("gateway.toml"), text, &Overrides::default())
}

/// Reads what a file says about routes, with an upstream before it.
fn routes(text: &str) -> Config {
    read(&format!("[upstream]\nurl = \"http://127.0.0.1:3000\"\n{text}"))
        .unwrap_or_else(|error| panic!("{text}\n{error}"))
}
