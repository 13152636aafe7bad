//! Files a configuration names: certificates, keys, secrets.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use super::reader::{At, TableReader};

/// Largest file a configuration may name, in bytes: a chain of certificates fits many times over.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Why a file cannot be used.
#[derive(Debug)]
pub(crate) enum NoFile {
    Missing(std::io::Error),
    NotAFile,
    TooLarge { bytes_max: u64 },
    NotText,
}

impl NoFile {
    /// The rest of a sentence that starts with the name of the setting.
    fn refusal(&self, path: &Path) -> String {
        let path = path.display();
        let why = match self {
            Self::Missing(cause) => format!("cannot be read: {cause}"),
            Self::NotAFile => "is not a file".to_owned(),
            Self::TooLarge { bytes_max } => format!("is larger than {bytes_max} bytes"),
            Self::NotText => "is not text".to_owned(),
        };
        format!("names {path}, which {why}; write the path of a file instead")
    }
}

/// The path as it is meant: relative to the file that names it.
pub(crate) fn resolved(path: &str, dir: &Path) -> PathBuf {
    dir.join(path)
}

/// The text of a file. Devices and pipes are refused, since reading them may never end.
pub(crate) fn text(path: &Path) -> Result<String, NoFile> {
    if !fs::metadata(path).map_err(NoFile::Missing)?.is_file() {
        return Err(NoFile::NotAFile);
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(NoFile::Missing)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(NoFile::Missing)?;
    if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > FILE_BYTES_MAX {
        return Err(NoFile::TooLarge { bytes_max: FILE_BYTES_MAX });
    }
    String::from_utf8(bytes).map_err(|_| NoFile::NotText)
}

/// The text of the file that this setting names; a fault if it cannot be had.
pub(crate) fn named(
    table: &TableReader<'_>,
    name: &str,
    path: &At<&str>,
    dir: &Path,
) -> Option<String> {
    let resolved = resolved(path.get_ref(), dir);
    let text = text(&resolved);
    text.map_err(|error| table.fault(path.span(), format!("`{name}` {}", error.refusal(&resolved))))
        .ok()
}

/// The path of a PEM file that must hold something of this kind.
pub(crate) fn expected(
    table: &TableReader<'_>,
    name: &str,
    path: &At<&str>,
    dir: &Path,
    holds: &str,
) -> PathBuf {
    let resolved = resolved(path.get_ref(), dir);
    if named(table, name, path, dir).is_some_and(|text| !text.contains(holds)) {
        let what = format!("`{name}` names {}, which holds no `{holds}`", resolved.display());
        table.fault(path.span(), format!("{what}; write the path of a PEM file instead"));
    }
    resolved
}
