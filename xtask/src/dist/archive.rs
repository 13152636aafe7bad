//! Files in archives: owned by root, of one time, in the order they are given in.

use std::{
    collections::BTreeSet,
    fmt::Write as _,
    io::{self, Cursor, Write},
};

use flate2::GzBuilder;
use tar::{Builder, EntryType, Header};
use zip::{CompressionMethod, ZipWriter, result::ZipResult, write::SimpleFileOptions};

use super::release::Release;
use crate::TaskFailure;

/// Something that is in an archive.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    /// Where, without a slash before it.
    pub(super) path: String,
    pub(super) mode: u32,
    /// The number of the user and the group it belongs to.
    pub(super) owner: u64,
    pub(super) kind: EntryKind,
}

#[derive(Debug, Clone)]
pub(super) enum EntryKind {
    File(Vec<u8>),
    Directory,
}

impl Entry {
    /// A file for everybody to read.
    pub(super) fn file(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self { path: path.into(), mode: 0o644, owner: 0, kind: EntryKind::File(content.into()) }
    }

    /// A file for everybody to run.
    pub(super) fn program(path: impl Into<String>, content: impl Into<Vec<u8>>) -> Self {
        Self { mode: 0o755, ..Self::file(path, content) }
    }

    /// An empty directory.
    pub(super) fn directory(path: impl Into<String>, mode: u32, owner: u64) -> Self {
        Self { path: path.into(), mode, owner, kind: EntryKind::Directory }
    }

    /// The same below a directory.
    pub(super) fn below(&self, directory: &str) -> Self {
        Self { path: format!("{directory}/{}", self.path), ..self.clone() }
    }

    pub(super) fn content(&self) -> &[u8] {
        match &self.kind {
            EntryKind::File(content) => content,
            EntryKind::Directory => &[],
        }
    }
}

/// A tar of these, with every directory above them.
pub(super) fn tar(entries: &[Entry], release: &Release) -> Result<Vec<u8>, TaskFailure> {
    let packed = || {
        let mut builder = Builder::new(Vec::new());
        let mut known: BTreeSet<String> = entries
            .iter()
            .filter(|entry| matches!(entry.kind, EntryKind::Directory))
            .map(|entry| entry.path.clone())
            .collect();
        for entry in entries {
            for (at, _) in entry.path.match_indices('/') {
                let above = entry.path[..at].to_owned();
                if known.insert(above.clone()) {
                    append(&mut builder, &Entry::directory(above, 0o755, 0), release)?;
                }
            }
            append(&mut builder, entry, release)?;
        }
        builder.into_inner()
    };
    packed().map_err(unpacked)
}

fn append(builder: &mut Builder<Vec<u8>>, entry: &Entry, release: &Release) -> io::Result<()> {
    let (kind, end) = match entry.kind {
        EntryKind::File(_) => (EntryType::Regular, ""),
        EntryKind::Directory => (EntryType::Directory, "/"),
    };
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(entry.mode);
    header.set_uid(entry.owner);
    header.set_gid(entry.owner);
    header.set_mtime(release.timestamp);
    header.set_size(entry.content().len() as u64);
    builder.append_data(&mut header, format!("{}{end}", entry.path), entry.content())
}

/// The same, compressed.
pub(super) fn tar_gz(entries: &[Entry], release: &Release) -> Result<Vec<u8>, TaskFailure> {
    gzip(&tar(entries, release)?, release)
}

/// Compressed, without a name or a time.
pub(super) fn gzip(content: &[u8], release: &Release) -> Result<Vec<u8>, TaskFailure> {
    let mut encoder = GzBuilder::new().write(Vec::new(), release.effort);
    encoder.write_all(content).and_then(|()| encoder.finish()).map_err(unpacked)
}

/// A zip of these files, without times.
pub(super) fn zip(entries: &[Entry], release: &Release) -> Result<Vec<u8>, TaskFailure> {
    let packed = || -> ZipResult<_> {
        let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
        for entry in entries {
            let options = SimpleFileOptions::default()
                .compression_method(CompressionMethod::Deflated)
                .compression_level(Some(i64::from(release.effort.level())))
                .unix_permissions(entry.mode);
            zip.start_file(&entry.path, options)?;
            zip.write_all(entry.content())?;
        }
        Ok(zip.finish()?.into_inner())
    };
    packed().map_err(|error| unpacked(error.into()))
}

/// Bytes as pairs of digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` calls")]
fn unpacked(error: io::Error) -> TaskFailure {
    TaskFailure::new(format!("an archive cannot be made: {error}"))
}
