//! What people type after `hapax quarantine`.

use clap::Subcommand;

use super::{StoreFileArgs, keys::usual_store};

/// See and end what follows where a database may have forgotten keys, after a failover or a restore.
///
/// Under quarantine, keys that are in the store are answered as ever, and keys that are not are not run: they may have
/// been used, in what was lost.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  hapax quarantine show --store postgres://owner@db/shop
  hapax quarantine begin --store sqlite:hapax.db
  hapax quarantine lift --store postgres://owner@db/shop --why 'compared with the bank until 12:04'")]
pub(crate) enum QuarantineTask {
    /// Say which database it is, what changed and when, and who is at work on it.
    Show(QuarantineStoreArgs),
    /// Begin one by hand: before anything is started on a database that was restored from a copy of its files.
    Begin(QuarantineStoreArgs),
    /// End it: keys that are not in the store are run again.
    Lift(LiftArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct QuarantineStoreArgs {
    /// The store: sqlite:PATH or postgres://user@host:port/database. Without it, what HAPAX_STORE
    /// says, or sqlite:hapax.db.
    #[arg(long, value_name = "URL")]
    #[arg(default_value_t = usual_store(), hide_default_value = true)]
    store: String,

    #[command(flatten)]
    file: StoreFileArgs,
}

impl QuarantineStoreArgs {
    /// The address that was typed, or the usual one.
    pub(crate) fn address(&self) -> String {
        self.file.or(&self.store)
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct LiftArgs {
    #[command(flatten)]
    pub(crate) store: QuarantineStoreArgs,

    /// Why that is safe. It is kept in the store.
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: String,

    /// Who says so; the name of the user who runs this unless said otherwise.
    #[arg(long, value_name = "NAME")]
    pub(crate) who: Option<String>,
}
