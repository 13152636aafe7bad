use std::path::{Path, PathBuf};

use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::RelayConfig;
use crate::config::{
    fault::{ConfigError, Faults},
    load,
    names::RELAY_FILE,
    reader::Reader,
};

/// A relay's own file: a store, and destinations as `[[destination]]` tables.
#[derive(Debug, Clone)]
pub struct RelayFile {
    /// Where the outbox is, if the file says so: `sqlite:PATH` or `postgres://…`.
    pub store: Option<String>,
    /// Where events are sent; at least one.
    pub destinations: Vec<RelayConfig>,
}

impl RelayFile {
    /// Reads the file at `path`; paths in it are relative to where it is.
    pub fn load(path: &Path) -> Result<Self, ConfigError> {
        Self::parse(path, &load::read(path)?)
    }

    /// Reads the text of the file at `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let (name, faults) = (path.display().to_string(), Faults::default());
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            faults.add(error.span().unwrap_or(0..0), error.message());
        }
        if !faults.is_empty() {
            return Err(faults.into_error(&name, text));
        }
        let table = Spanned::new(table.span(), DeValue::Table(table.into_inner()));
        let file = {
            let top = Reader::new(&table, RELAY_FILE, &faults);
            let dir = path.parent().map_or_else(PathBuf::new, Path::to_owned);
            let store = top.parsed("store", load::store).map(Spanned::into_inner);
            let store = store.map(|store| load::beside(&store, &dir));
            let destinations = super::read(&top, "destination", &dir);
            if destinations.is_empty() && top.is_sound() {
                let what = "there is nowhere to send events";
                top.fault(0..0, format!("{what}; write a `[[destination]]` table"));
            }
            Self { store, destinations }
        };
        if faults.is_empty() { Ok(file) } else { Err(faults.into_error(&name, text)) }
    }
}
