//! Which release it is.

use std::{env, path::Path, process::Command};

use flate2::Compression;

use super::dependencies::metadata;
use crate::TaskFailure;

/// What all packages of a release have in common.
pub(super) struct Release {
    /// As in `Cargo.toml`.
    pub(super) version: String,
    /// One sentence.
    pub(super) description: String,
    /// When it was made, in seconds since 1970: that of the commit, so that it is no matter when it is packed.
    pub(super) timestamp: u64,
    /// How much work is put into making packages small.
    pub(super) effort: Compression,
}

/// What all of it is licensed under.
pub(super) const LICENCE: &str = "Apache-2.0 OR MIT";
/// Who is behind it, where a package has to say so.
pub(super) const AUTHORS: &str = "The Hapax developers";

impl Release {
    /// That of the workspace at `root`.
    pub(super) fn of(root: &Path, effort: Compression) -> Result<Self, TaskFailure> {
        let packages = metadata(root, &["--no-deps"])?.packages;
        let program = packages.into_iter().find(|package| package.name == "hapax-cli");
        let program = program.ok_or_else(|| TaskFailure::new("there is no crate `hapax-cli`"))?;
        Ok(Self {
            version: program.version,
            description: program.description.unwrap_or_default(),
            timestamp: timestamp(root),
            effort,
        })
    }
}

/// What `SOURCE_DATE_EPOCH` says, else when the last commit was made, else the beginning of time.
fn timestamp(root: &Path) -> u64 {
    let said = env::var("SOURCE_DATE_EPOCH").ok().or_else(|| {
        let mut git = Command::new("git");
        let output = git.args(["log", "-1", "--format=%ct"]).current_dir(root).output().ok()?;
        String::from_utf8(output.stdout).ok()
    });
    said.and_then(|said| said.trim().parse().ok()).unwrap_or(0)
}
