//! The small file beside a database file that remembers how far it had come.
//!
//! It is on disk before the database has a name, and synced at each change: whoever finds none beside a database that was
//! used has a copy before him, or the position was removed. One that is behind the database is of no harm.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use hapax_core::incarnation::{Incarnation, Remembered};

/// Where the position of one database file is written.
#[derive(Debug, Clone)]
pub(crate) struct PositionFile(PathBuf);

impl PositionFile {
    /// The one of this database file, by whatever link it was named: as SQLite finds its log.
    pub(crate) fn of(database: &Path) -> Self {
        let path = fs::canonicalize(database).unwrap_or_else(|_| database.to_owned());
        Self(with_suffix(&path, "-position"))
    }

    /// What is remembered of this incarnation.
    pub(crate) fn read(&self, of: &Incarnation) -> io::Result<Remembered> {
        let text = match fs::read_to_string(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Remembered::Nothing);
            }
            text => text?,
        };
        let parsed = text.trim_end().rsplit_once(' ');
        let parsed = parsed.and_then(|(origin, position)| Some((origin, position.parse().ok()?)));
        Ok(match parsed {
            Some((origin, position)) if origin == of.origin() => Remembered::Position(position),
            Some((_, 0)) => Remembered::Nothing,
            // What cannot be read was once something else.
            Some(_) | None => Remembered::Another,
        })
    }

    /// Writes that this incarnation has come into being and acknowledged nothing; not over another that did, which
    /// nobody has noted as lost yet.
    pub(crate) fn announce(&self, of: &Incarnation) -> io::Result<()> {
        if self.read(of)? == Remembered::Another {
            return Ok(());
        }
        self.write(of, 0)?;
        let dir = self.0.parent().filter(|dir| !dir.as_os_str().is_empty());
        File::open(dir.unwrap_or_else(|| Path::new(".")))?.sync_all()
    }

    /// Writes how far this incarnation has come. For its owner's eyes alone, as the database is.
    pub(crate) fn write(&self, of: &Incarnation, position: i64) -> io::Result<()> {
        let fresh = with_suffix(&self.0, ".new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&fresh)?;
        writeln!(file, "{} {position}", of.origin())?;
        file.sync_data()?;
        fs::rename(fresh, &self.0)
    }
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut path = path.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}
