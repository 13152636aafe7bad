//! The file of a relay that runs alone.

use std::path::Path;

use hapax_gateway::config::{ConfigError, load_file, store_of};
use hapax_messaging::relay::{RELAY_SETTINGS, RelayConfig};

use super::tables;

/// A relay's own file: a store, and destinations as `[[destination]]` tables.
#[derive(Debug)]
pub(super) struct RelayFile {
    /// Where the outbox is, if the file says so: `sqlite:PATH` or `postgres://…`.
    pub(super) store: Option<String>,
    /// Where events are sent; at least one.
    pub(super) destinations: Vec<RelayConfig>,
}

impl RelayFile {
    /// Reads the file at `path`; paths in it are relative to where it is.
    pub(super) fn load(path: &Path) -> Result<Self, ConfigError> {
        const NAME: &str = "destination";
        load_file(path, &["store", NAME], &[(NAME, RELAY_SETTINGS)], |top, dir| {
            let store = store_of(top, dir);
            let destinations = tables::read(top, NAME, dir);
            if destinations.is_empty() && top.is_sound() {
                let what = "there is nowhere to send events";
                top.fault(0..0, format!("{what}; write a `[[destination]]` table"));
            }
            Some(Self { store, destinations })
        })
    }
}
