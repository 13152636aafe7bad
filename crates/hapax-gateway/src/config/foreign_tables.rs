//! Tables of a gateway's file that are not the gateway's own.

use std::{fmt, path::Path};

use super::reader::TableReader;

/// Tables that whoever runs the gateway reads itself, each begun with `[[name]]`.
///
/// They are read together with the rest of the file, so that a person hears of every fault at once.
pub struct Beside<'a> {
    /// What they are called.
    pub name: &'static str,
    /// What each of them may hold.
    pub settings: &'static [&'static str],
    /// Reads them from the top of the file, and says in a line each what is in force.
    pub read: &'a mut dyn FnMut(&TableReader<'_>, &Surroundings<'_>) -> Vec<String>,
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
        f.debug_struct("Beside").field("name", &self.name).finish_non_exhaustive()
    }
}
