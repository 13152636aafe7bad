use std::{
    io::{self, Write},
    path::PathBuf,
    process::ExitCode,
};

use hapax::{
    InvalidOutcome, InvalidReason, StoreError,
    operator::{ChangeError, Refusal},
    tower::InvalidResolution,
};

use super::admin::AdminError;
use crate::{
    encryption::EncryptionTaskError,
    store::{InvalidAddress, OpenError},
};

/// Why a task with keys was not done, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum KeysError {
    #[error("--store or HAPAX_STORE is no store's address")]
    Address(#[from] InvalidAddress),
    #[error("cannot read --token-file {}", path.display())]
    TokenFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("a store in memory holds nothing to look at; ask its gateway with --admin")]
    Memory,
    #[error("a running gateway purges by itself; give --store instead of --admin")]
    PurgedByItself,
    #[error(
        "this store is encrypted, and what you give would be stored in the clear; give --master-key-file, \
         or ask its gateway with --admin"
    )]
    NoMasterKey,
    #[error(transparent)]
    MasterKey(#[from] EncryptionTaskError),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error("the store could not be read")]
    Store(#[from] StoreError),
    #[error(transparent)]
    Admin(#[from] AdminError),
    #[error("{id:?} was listed as an id, and is none")]
    NoId { id: String },
    #[error("nothing is known about this key; see `hapax keys list`")]
    NotFound,
    #[error("{count} keys are meant; name one by its id")]
    Several { count: usize },
    #[error(
        "the search looked at {looked_at} records and did not come to an end; raise --search-max, \
             or give --tenant and --scope"
    )]
    SearchEnded { looked_at: u64 },
    #[error("--who or --why cannot be kept")]
    Reason(#[from] InvalidReason),
    #[error("cannot read --body {}", path.display())]
    Body {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("the answer cannot be kept")]
    Outcome(#[from] InvalidOutcome),
    #[error("--status is not what --as says")]
    Resolution(#[from] InvalidResolution),
    #[error("nothing was changed: you did not say yes")]
    Declined,
    #[error(transparent)]
    Change(#[from] ChangeError),
    #[error("it was changed, but the note after the change was not kept")]
    EndNotNoted,
    #[error("cannot print the answer")]
    Print(#[from] io::Error),
    #[error("cannot start")]
    Runtime(#[source] io::Error),
}

impl KeysError {
    /// As `hapax keys --help` lists them.
    pub(super) fn exit_code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Admin(error) => error.exit_code(),
            Self::Resolution(_) => 2,
            Self::NotFound | Self::Change(ChangeError::Refused(Refusal::Unknown)) => 3,
            Self::Several { .. } | Self::Declined | Self::Change(ChangeError::Refused(_)) => 4,
            Self::Change(ChangeError::Unconfirmed(_)) => 5,
            Self::Address(_)
            | Self::TokenFile { .. }
            | Self::Memory
            | Self::NoMasterKey
            | Self::MasterKey(_)
            | Self::PurgedByItself
            | Self::Open(_)
            | Self::Store(_)
            | Self::SearchEnded { .. }
            | Self::Reason(_)
            | Self::Body { .. }
            | Self::Outcome(_)
            | Self::Change(ChangeError::NotNoted(_) | ChangeError::Store(_))
            | Self::EndNotNoted
            | Self::NoId { .. }
            | Self::Print(_)
            | Self::Runtime(_) => 1,
        })
    }

    /// Whether whoever read the answer has heard enough.
    pub(super) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Print(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Nobody is left to be told when the terminal is gone.
pub(super) fn tell(error: &KeysError) {
    let _ = writeln!(io::stderr(), "hapax: {}", crate::sentence(error));
}
