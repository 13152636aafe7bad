//! `cargo xtask bench-peers`: Hapax beside the crates one would use instead.
//!
//! They are a project of their own, which nothing else builds: `docs/peers.md` says what it shows.

use std::{path::Path, process::Stdio};

use clap::Args;

use crate::{
    TaskFailure,
    ci::{command, succeed, target_dir},
};

/// What the comparison is told.
#[derive(Debug, Args)]
pub struct BenchPeers {
    /// Passed on as they are: `--quick`, `--exam-only`, `--json FILE`, `--help`.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

/// Checks that its lock file fits what the workspace depends on, which is known long before it is compiled.
pub(crate) fn check_lock(root: &Path) -> Result<(), TaskFailure> {
    let mut command = command(&root.join(FOLDER));
    succeed(command.args(["tree", "--locked", "--depth", "0"]).stdout(Stdio::null()))
}

/// Checks that the comparison still compiles; what it shares with the workspace is not built again.
pub(crate) fn check(root: &Path) -> Result<(), TaskFailure> {
    let mut command = command(&root.join(FOLDER));
    command.args(["check", "--locked", "--ignore-rust-version", "--target-dir"]);
    succeed(command.arg(target_dir()?))
}

const FOLDER: &str = "testing/bench-peers";

impl BenchPeers {
    /// Builds the comparison and runs it.
    pub fn run(&self, root: &Path) -> Result<(), TaskFailure> {
        let mut command = command(&root.join(FOLDER));
        // One peer asks for a newer compiler than it needs.
        command.args(["run", "--release", "--locked", "--ignore-rust-version", "--"]);
        succeed(command.args(&self.args))
    }
}
