//! `--store-file`, beside each `--store`.

use std::path::PathBuf;

use clap::Args;

/// Where the address of a store is, for those who do not want to type it.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct StoreFileArgs {
    /// A file that holds the address, instead of --store: a password in it is seen by nobody who lists
    /// processes, and one that is changed there is used by the next connection.
    #[arg(long, value_name = "FILE", conflicts_with = "store")]
    store_file: Option<PathBuf>,
}

impl StoreFileArgs {
    /// The address that says so, or else this one.
    pub(crate) fn or(&self, store: &str) -> String {
        self.address().unwrap_or_else(|| store.to_owned())
    }

    /// The address that says so.
    pub(crate) fn address(&self) -> Option<String> {
        self.store_file.as_ref().map(|path| format!("address-file:{}", path.display()))
    }
}
