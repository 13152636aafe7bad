//! The file of a gateway: what it says, and the files it names.

mod listeners;
mod routes;
mod secrets;

use std::path::Path;

use hapax_gateway::Config;

use super::{Expectations, diagnosis::Diagnosis};

/// Everything there is to say about this configuration, which was read from this file.
pub(super) fn examine(file: &Path, config: &Config, expected: Expectations) -> Vec<Diagnosis> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // It was read before with more care, and found good.
    let written: toml::Table = text.parse().unwrap_or_default();
    let mut found = listeners::examine(config);
    found.extend(routes::examine(config, &written, expected.client_retries_for));
    found.push(secrets::examine(file, &written));
    found
}
