//! `cargo xtask upgrade`: gateways of the version before, replaced by those of this one and at work beside them.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;
use hapax_services::roster::Service;

use crate::{
    TaskFailure,
    ci::{command, not_run, succeed, target_dir, with_services},
};

/// The newest state whose PostgreSQL schema is version 10, the oldest that this version works with.
const BEFORE: &str = "168302f";
const TESTS: [&str; 2] = ["going_out::replacement::", "going_out::versions::"];

/// Which version is upgraded.
#[derive(Debug, Args)]
pub struct Upgrade {
    /// The version before, as git calls it.
    #[arg(long, value_name = "REV", default_value = BEFORE)]
    from: String,
}

impl Upgrade {
    /// Builds the program of the version before, once, and runs the tests that need two versions with it.
    pub fn run(&self, root: &Path) -> Result<(), TaskFailure> {
        let before = program(root, &target_dir()?.join("upgrade"), &self.from)?;
        println!("the version before is {}", before.display());
        let mut command = command(root);
        command.args(["test", "--locked", "-p", "hapax-cli", "--all-features", "--test", "it"]);
        command.arg("--").args(TESTS).env("HAPAX_PREVIOUS_PROGRAM", before);
        with_services(root, &[Service::Postgres], || succeed(&mut command))
    }
}

/// The program of this revision of the repository at `root`, built in `dir` unless it is there from an earlier time.
///
/// What a build leaves that was interrupted is never taken for it, and is removed by the next one.
pub fn program(root: &Path, dir: &Path, revision: &str) -> Result<PathBuf, TaskFailure> {
    let unusable = |error: io::Error| TaskFailure::new(format!("{}: {error}", dir.display()));
    let commit = commit(root, revision)?;
    let kept = dir.join(format!("hapax-{commit}"));
    fs::create_dir_all(dir).map_err(unusable)?;
    // Who builds another one at the same time would take the sources away.
    let lock = File::create(dir.join("lock")).map_err(unusable)?;
    lock.lock().map_err(unusable)?;
    if kept.is_file() {
        return Ok(kept);
    }
    let (source, built) = (dir.join("source"), dir.join("build"));
    remove_worktree(root, &source).map_err(unusable)?;
    let mut add = git(root);
    succeed(
        add.args(["worktree", "add", "--quiet", "--force", "--detach"]).arg(&source).arg(&commit),
    )?;
    let mut build = command(&source);
    build.args(["build", "--locked", "-p", "hapax-cli", "--bin", "hapax", "--target-dir"]);
    succeed(build.arg(&built))?;
    let finished = dir.join("finished");
    fs::copy(built.join("debug/hapax"), &finished).map_err(unusable)?;
    fs::rename(finished, &kept).map_err(unusable)?;
    remove_worktree(root, &source).map_err(unusable)?;
    Ok(kept)
}

/// The whole name of a commit.
fn commit(root: &Path, revision: &str) -> Result<String, TaskFailure> {
    let mut parse = git(root);
    parse.args(["rev-parse", "--verify", "--quiet", "--end-of-options"]);
    let output = parse.arg(format!("{revision}^{{commit}}")).output().map_err(not_run)?;
    if !output.status.success() {
        let told = format!("git knows no commit {revision}: fetch the whole history");
        return Err(TaskFailure::new(told));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Removes what may be there of a worktree, and of what git knows of it.
fn remove_worktree(root: &Path, source: &Path) -> io::Result<()> {
    // It fails where there is none, and where it was made halfway; the folder goes in any case.
    let _ = git(root).args(["worktree", "remove", "--force"]).arg(source).output()?;
    if source.exists() {
        fs::remove_dir_all(source)?;
    }
    Ok(())
}

fn git(root: &Path) -> Command {
    let mut git = Command::new("git");
    git.current_dir(root);
    git
}
