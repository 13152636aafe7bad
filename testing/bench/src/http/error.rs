use std::{io, path::PathBuf};

use hapax_services::ServiceError;

use super::client::WrongAnswer;

/// Why nothing could be measured over HTTP, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("a server of the benchmark is not there")]
    Service(#[from] ServiceError),
    #[error("cannot find the file of this program, which it starts again as the upstream")]
    OwnFile(#[source] io::Error),
    #[error(
        "there is no program {}; run `cargo xtask bench`, which builds it, or give --program the file \
         of `hapax`",
        file.display()
    )]
    NoProgram { file: PathBuf },
    #[error("cannot find a free port on 127.0.0.1")]
    Port(#[source] io::Error),
    #[error("the upstream of the benchmark cannot serve")]
    Upstream(#[source] io::Error),
    #[error("what is measured cannot be reached")]
    Connect(#[source] io::Error),
    #[error("the upstream does not tell what it executed")]
    Ledger(#[source] WrongAnswer),
    #[error("a connection could not be opened and used")]
    Idle(#[source] WrongAnswer),
}
