use std::io::{self, Write};

use hapax_gateway::config::ConfigError;

use crate::store::InvalidAddress;

/// Why nothing could be looked at, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DoctorError {
    #[error("the store's address cannot be used")]
    Address(#[from] InvalidAddress),
    #[error("the configuration cannot be used:\n{0}")]
    Config(#[from] ConfigError),
    #[error("cannot print the answer")]
    Print(#[from] io::Error),
    #[error("cannot start")]
    Runtime(#[source] io::Error),
}

/// Nobody is left to be told when the terminal is gone.
pub(super) fn tell(error: &DoctorError) {
    let _ = writeln!(io::stderr(), "hapax: {}", crate::sentence(error));
}
