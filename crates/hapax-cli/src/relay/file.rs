//! The file of a relay that runs alone.

use std::{net::SocketAddr, path::Path};

use hapax::Encryption;
use hapax_gateway::config::{
    ConfigError, ForeignTable, encryption_of, load_file, reader::At, socket, store_of,
};
use hapax_messaging::relay::{RELAY_SETTINGS, RelayConfig};

use super::tables;
use crate::telemetry::{TELEMETRY, TelemetrySettings};

/// A relay's own file: a store, and destinations as `[[destination]]` tables.
#[derive(Debug)]
pub(super) struct RelayFile {
    /// Where the outbox is, if the file says so: `sqlite:PATH` or `postgres://…`.
    pub(super) store: Option<String>,
    /// Where health and metrics are, if the file says so.
    pub(super) admin: Option<SocketAddr>,
    /// Where events are sent; at least one, where there is a file.
    pub(super) destinations: Vec<RelayConfig>,
    /// What encrypted events are opened with.
    pub(super) encryption: Option<Encryption>,
    /// Who is told what the relay does; the environment may say so, too.
    pub(super) telemetry: TelemetrySettings,
}

impl RelayFile {
    /// Reads the file at `path`, if there is one; paths in it are relative to where it is.
    pub(super) fn load(path: Option<&Path>) -> Result<Self, ConfigError> {
        const NAME: &str = "destination";
        let destination = ForeignTable { name: NAME, settings: RELAY_SETTINGS, is_repeated: true };
        let known = &["store", "store_file", "store_env", "admin", "encryption", "telemetry", NAME];
        load_file(path, known, &[destination, TELEMETRY], |top, dir| {
            let store = store_of(top, dir);
            let admin = top.parsed("admin", socket).map(At::into_inner);
            let telemetry = TelemetrySettings::read(top, dir);
            let encryption = encryption_of(top, dir);
            let destinations = tables::read(top, NAME, dir);
            if path.is_some() && destinations.is_empty() && top.is_sound() {
                let what = "there is nowhere to send events";
                top.fault(0..0, format!("{what}; write a `[[destination]]` table"));
            }
            Some(Self { store, admin, destinations, encryption, telemetry })
        })
    }
}
