use std::io;

use hapax_services::ServiceError;

use super::client::Wrong;

/// Why nothing could be measured over HTTP, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("a server of the benchmark is not there")]
    Service(#[from] ServiceError),
    #[error("cannot find the file of this program, which it starts again to be measured")]
    Program(#[source] io::Error),
    #[error("cannot find a free port on 127.0.0.1")]
    Port(#[source] io::Error),
    #[error("the upstream of the benchmark cannot serve")]
    Upstream(#[source] io::Error),
    #[error("what is measured cannot be reached")]
    Connect(#[source] io::Error),
    #[error("the upstream does not tell what it executed")]
    Ledger(#[source] Wrong),
    #[error("a connection could not be opened and used")]
    Idle(#[source] Wrong),
}
