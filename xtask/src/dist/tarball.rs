//! The program and its documents, to be unpacked anywhere.

use super::{
    Package,
    archive::{Entry, tar_gz},
    payload::Payload,
    program::Program,
    release::Release,
};
use crate::TaskFailure;

/// `hapax-VERSION-PROCESSOR-linux.tar.gz`, with one folder in it.
pub(super) fn pack(
    program: &Program,
    payload: &Payload,
    release: &Release,
) -> Result<Package, TaskFailure> {
    let folder = format!("hapax-{}-{}-linux", release.version, program.architecture.name());
    let mut entries = vec![
        Entry::program("hapax", program.content.clone()),
        Entry::file("README.md", payload.readme.clone()),
        Entry::file("hapax.sql", payload.schema.clone()),
        Entry::file("gateway.toml", payload.packaging("gateway.toml")),
        Entry::file("hapax.service", payload.packaging("systemd/hapax.service")),
        Entry::file("hapax.socket", payload.packaging("systemd/hapax.socket")),
        Entry::file("hapax.cdx.json", payload.bill.clone()),
    ];
    entries.extend(payload.licences.iter().cloned());
    entries.extend(payload.completions.iter().map(|entry| entry.below("completions")));
    entries.extend(payload.manual.iter().map(|entry| entry.below("man/man1")));
    let entries: Vec<_> = entries.iter().map(|entry| entry.below(&folder)).collect();
    Ok(Package::new(format!("{folder}.tar.gz"), tar_gz(&entries, release)?))
}
