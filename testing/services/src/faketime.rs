//! A clock that tests can set, for a process and for nobody else: Debian's `faketime`.

use std::{
    fs,
    path::{Path, PathBuf},
};

use crate::{debian, error::ServiceError};

const TOOL: &str = "faketime";
const REMEDY: &str = "install it (Debian: `apt-get install -y faketime`)";
/// Where Debian has a directory for each architecture.
const LIBRARIES: &str = "/usr/lib";
const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// The wall clock of one process: the system's, moved by what a file says.
#[derive(Debug, Clone)]
pub struct FakeClock {
    library: PathBuf,
    file: PathBuf,
}

impl FakeClock {
    /// A clock that is right until it is [set](Self::set), kept in this file. Installs the library if
    /// need be.
    pub fn new(file: PathBuf) -> Result<Self, ServiceError> {
        let library = match find() {
            Some(library) => library,
            None => {
                debian::install(TOOL, "faketime", REMEDY)?;
                find().ok_or(ServiceError::Missing { server: TOOL, remedy: REMEDY })?
            }
        };
        let clock = Self { library, file };
        clock.set("+0")?;
        Ok(clock)
    }

    /// Sets it at once, for every process that has it: `+2d`, `-1h`, `+0` for the right time.
    pub fn set(&self, offset: &str) -> Result<(), ServiceError> {
        // A reader never sees half of it.
        let new = self.file.with_extension("new");
        let written = fs::write(&new, offset).and_then(|()| fs::rename(&new, &self.file));
        written.map_err(ServiceError::io("set a fake clock"))
    }

    /// What a process must be started with to have this clock. Its monotonic clock stays the system's,
    /// as it does when somebody sets the time.
    pub fn environment(&self) -> [(&'static str, &Path); 5] {
        [
            ("LD_PRELOAD", &self.library),
            ("FAKETIME_TIMESTAMP_FILE", &self.file),
            ("FAKETIME_NO_CACHE", Path::new("1")),
            ("FAKETIME_DONT_FAKE_MONOTONIC", Path::new("1")),
            ("DONT_FAKE_MONOTONIC", Path::new("1")),
        ]
    }
}

fn find() -> Option<PathBuf> {
    let directories = fs::read_dir(LIBRARIES).ok()?;
    let libraries = directories.filter_map(|entry| Some(entry.ok()?.path().join(LIBRARY)));
    libraries.into_iter().find(|library| library.is_file())
}
