//! `cargo xtask services`: real servers for tests, left running between commands.

use std::{env, error::Error, path::Path};

use clap::Subcommand;
use hapax_services::{ServiceError, roster::Roster};

use crate::Failure;

/// What to do with the servers.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum Action {
    /// Start those that do not run.
    Up,
    /// Stop those we started and remove their files.
    Down,
    /// Tell which ones run.
    Status,
}

/// Does `action` to the servers of the workspace at `root`.
///
/// A server that cannot be had is told in the last lines; only in CI is that a failure.
pub fn run(root: &Path, action: Action) -> Result<(), Failure> {
    let roster = roster(root);
    match action {
        Action::Up => match roster.up() {
            Ok(up) => println!("{up}"),
            Err(error) if in_ci() => return Err(unavailable(&error)),
            Err(error) => println!("{}", unavailable(&error)),
        },
        Action::Down => match roster.down() {
            Ok(true) => println!("postgres stopped, its files removed"),
            Ok(false) => println!("postgres was not running"),
            Err(error) => return Err(Failure::new(describe(&error))),
        },
        Action::Status => match roster.url() {
            Some(url) => println!("postgres runs: {url}"),
            None => println!("postgres does not run"),
        },
    }
    Ok(())
}

/// The servers of the workspace at `root`.
pub fn roster(root: &Path) -> Roster {
    Roster::at(root.join(".services"))
}

/// The failure to have a server, with all its causes.
pub fn unavailable(error: &ServiceError) -> Failure {
    Failure::new(format!("postgres cannot be had: {}", describe(error)))
}

fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|value| value == "true")
}

fn describe(error: &ServiceError) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}
