//! Files are for their owner's eyes alone: they hold requests and answers as they were.

use std::{io, path::Path};

/// When a file came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileAge {
    Now,
    Before,
}

/// Who may read and write a file: its owner alone. SQLite gives its other files the rights of the first.
#[cfg(unix)]
const PRIVATE_MODE: u32 = 0o600;

/// Makes the file before SQLite does, so that nobody else can ever open it. The rights of a file that
/// is there are its owner's to decide; they are said aloud if they are wider.
///
/// A file that is there is not opened: closing it again would free the locks that SQLite holds on it.
#[cfg(unix)]
pub(crate) fn make_private(path: &Path) -> FileAge {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

    if let Ok(found) = std::fs::metadata(path) {
        let mode = found.permissions().mode() & 0o777;
        if mode & !PRIVATE_MODE != 0 {
            let (path, mode) = (path.display(), format!("{mode:o}"));
            tracing::warn!(%path, mode, "others may read this file; `chmod 600` it and those beside it");
        }
        return FileAge::Before;
    }
    if path == Path::new(":memory:") {
        return FileAge::Before;
    }
    let mut options = std::fs::OpenOptions::new();
    match options.write(true).create_new(true).mode(PRIVATE_MODE).open(path) {
        Ok(_) => FileAge::Now,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => FileAge::Now,
        // What keeps the file from being made is better told by SQLite.
        Err(_) => FileAge::Before,
    }
}

/// A link that led nowhere was followed by SQLite alone, which knows no such rights.
#[cfg(unix)]
pub(crate) fn keep_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;

    std::fs::set_permissions(path, std::fs::Permissions::from_mode(PRIVATE_MODE))
}

#[cfg(not(unix))]
pub(crate) fn make_private(_: &Path) -> FileAge {
    FileAge::Before
}

#[cfg(not(unix))]
pub(crate) fn keep_private(_: &Path) -> io::Result<()> {
    Ok(())
}
