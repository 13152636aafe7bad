//! An SQLite file, and the file system it is on.

mod database;
mod file;
mod readers;
mod sync;

use std::path::Path;

use indicatif::ProgressBar;

use super::{Expectations, diagnosis::Diagnosis};

/// Everything there is to say about this file.
pub(super) fn examine(
    path: &Path,
    expected: Expectations,
    progress: &ProgressBar,
) -> Vec<Diagnosis> {
    progress.set_message("the file");
    let Ok(metadata) = path.metadata() else { return vec![file::missing(path)] };
    if !metadata.is_file() {
        return vec![file::not_a_file(path)];
    }
    let mut found = file::examine(path, &metadata);
    found.push(readers::examine(path));
    progress.set_message("how long a sync takes");
    found.push(sync::examine(path));
    progress.set_message("the tables, up to half a minute");
    found.extend(database::examine(path, expected));
    found
}

/// The directory a file is in.
fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if directory.as_os_str().is_empty() => Path::new("."),
        Some(directory) => directory,
        None => Path::new("/"),
    }
}

/// The file that SQLite keeps beside another.
fn beside(path: &Path, end: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}
