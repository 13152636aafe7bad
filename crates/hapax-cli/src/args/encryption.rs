//! What people type after `hapax encryption`.

use std::path::PathBuf;

use clap::Subcommand;
use hapax::Tenant;

use super::{StoreFileArgs, keys::usual_store};

/// Look after the keys that what is stored is encrypted with.
#[derive(Debug, Subcommand)]
#[command(after_help = "Examples:
  openssl rand -base64 32 > master.key
  hapax encryption show --store postgres://owner@db/shop
  hapax encryption rewrap --config hapax.toml
  hapax encryption erase --tenant jwt:acme --why 'their contract ended'")]
pub(crate) enum EncryptionTask {
    /// Show which master keys wrap the data keys of a store, and the data keys of a tenant.
    Show(ShowKeysArgs),
    /// Put every data key under the present master key, while the store is in use.
    ///
    /// Afterwards the previous master key is no longer needed by this store. It may be stopped and run
    /// again at any time.
    Rewrap(RewrapArgs),
    /// Forget the data keys of a tenant: nothing stored for it so far can be read again, by anybody.
    ///
    /// Its keys stay used: a repeated request is told that it was done and that its answer was not kept,
    /// and is not run again. Running gateways follow within a minute.
    Erase(EraseArgs),
}

/// Where the data keys are.
#[derive(Debug, clap::Args)]
pub(crate) struct KeyStoreArgs {
    /// The store: sqlite:PATH or postgres://user@host:port/database. Without it, what --config or
    /// HAPAX_STORE says, or sqlite:hapax.db.
    #[arg(long, value_name = "URL")]
    store: Option<String>,

    #[command(flatten)]
    file: StoreFileArgs,

    /// The file of a gateway: its store, and its `[encryption]`.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Answer in JSON, for programs.
    #[arg(long)]
    pub(crate) json: bool,
}

impl KeyStoreArgs {
    /// The store of somebody who names none.
    pub(crate) fn usual_store(&self) -> String {
        self.typed_store().unwrap_or_else(usual_store)
    }

    /// The store that was typed.
    pub(crate) fn typed_store(&self) -> Option<String> {
        self.file.address().or_else(|| self.store.clone())
    }
}

/// The keys to read a store, an outbox or a journal with.
#[derive(Debug, clap::Args)]
pub(crate) struct MasterKeyArgs {
    /// The file with the master key: 32 random bytes in base64 or hexadecimal digits.
    #[arg(long, env = "HAPAX_MASTER_KEY_FILE", value_name = "FILE")]
    pub(crate) master_key_file: Option<PathBuf>,

    /// The file with the master key it follows, as long as a data key is wrapped by that one.
    #[arg(long, env = "HAPAX_PREVIOUS_MASTER_KEY_FILE", value_name = "FILE")]
    #[arg(requires = "master_key_file")]
    pub(crate) previous_master_key_file: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowKeysArgs {
    #[command(flatten)]
    pub(crate) store: KeyStoreArgs,

    /// Show the data keys of this tenant, too.
    #[arg(long, value_parser = |raw: &str| Tenant::parse(raw))]
    pub(crate) tenant: Option<Tenant>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RewrapArgs {
    #[command(flatten)]
    pub(crate) store: KeyStoreArgs,

    #[command(flatten)]
    pub(crate) keys: MasterKeyArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct EraseArgs {
    #[command(flatten)]
    pub(crate) store: KeyStoreArgs,

    /// Whose keys are forgotten, as `hapax keys list` shows the tenant.
    #[arg(long, value_parser = |raw: &str| Tenant::parse(raw))]
    pub(crate) tenant: Tenant,

    /// Why it is done. It is kept in place of the keys.
    #[arg(long, value_name = "TEXT")]
    pub(crate) why: String,

    /// Who does it; the name of the user who runs this unless said otherwise.
    #[arg(long, value_name = "NAME")]
    pub(crate) who: Option<String>,

    /// Do not ask.
    #[arg(long, short)]
    pub(crate) yes: bool,
}
