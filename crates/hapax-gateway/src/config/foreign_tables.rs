//! Tables of a gateway's file that are not the gateway's own.

use std::{fmt, path::Path};

use super::{names::Home, reader::TableReader};

/// Tables that whoever runs the gateway reads itself.
///
/// They are read together with the rest of the file, so that a person hears of every fault at once.
pub struct Beside<'a> {
    /// Which there may be.
    pub tables: &'a [ForeignTable],
    /// Reads them from the top of the file, and says in a line each what is in force.
    pub read: &'a mut dyn FnMut(&TableReader<'_>, &Surroundings<'_>) -> Vec<String>,
}

/// One of them.
#[derive(Debug, Clone, Copy)]
pub struct ForeignTable {
    /// What it is called.
    pub name: &'static str,
    /// What it may hold.
    pub settings: &'static [&'static str],
    /// Whether there may be several, each begun with `[[name]]`.
    pub is_repeated: bool,
}

impl ForeignTable {
    /// Where its settings belong, in words.
    pub(super) fn home(self) -> Home {
        let Self { name, settings, is_repeated } = self;
        let words = if is_repeated { format!("in `[[{name}]]`") } else { format!("in `[{name}]`") };
        (words, settings)
    }
}

/// What is known of the file by then.
#[derive(Debug, Clone, Copy)]
pub struct Surroundings<'a> {
    /// Where the file is: paths in it are relative to that.
    pub dir: &'a Path,
    /// Where records are kept.
    pub store: &'a str,
}

impl fmt::Debug for Beside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beside").field("tables", &self.tables).finish_non_exhaustive()
    }
}
