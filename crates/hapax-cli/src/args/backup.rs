//! `hapax backup`.

use std::path::PathBuf;

use clap::Args;

/// Copy an SQLite store while it is in use.
///
/// The copy is the store as it was at one instant: it holds every operation that was answered before the
/// command began, and nothing by halves. Gateways go on writing meanwhile. It is checked and synced to
/// disk before it gets its name, and only its owner can read it. A PostgreSQL store is backed up by
/// PostgreSQL's own means.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  hapax backup --store sqlite:hapax.db --to hapax-monday.db

A copy is a store: `hapax keys list --store sqlite:hapax-monday.db` shows it. Operations that were run
after it was made are not in it, so a gateway on it runs no key that is not there, until somebody says
`hapax quarantine lift`.

Exit status: 0 when the copy is there and good; 1 when there is none.")]
pub(crate) struct BackupArgs {
    /// The store: sqlite:PATH.
    #[arg(long, env = "HAPAX_STORE", value_name = "URL", hide_env_values = true)]
    pub(crate) store: String,

    /// Where the copy goes: a file that is not there yet.
    #[arg(long, value_name = "FILE")]
    pub(crate) to: PathBuf,
}
