//! `hapax man`.

use std::path::PathBuf;

use clap::Args;

/// Print the manual page of hapax, or write those of all its commands into a directory.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hapax man | man -l -
  hapax man ~/.local/share/man/man1    hapax.1, hapax-serve.1, hapax-keys-list.1 and so on")]
pub(crate) struct ManArgs {
    /// Where the pages are written; it is made if it is not there.
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}
