//! Why the stream is not there.

use std::io;

use tokio::time::error::Elapsed;

use super::error::TailError;
use crate::{connect::ConnectFailure, error::StatementFailure};

/// Why a stream ended, or did not begin. Whatever it is, the table is read and the stream is begun
/// again later.
#[derive(Debug, thiserror::Error)]
pub(super) enum StreamEnd {
    #[error("the stream cannot be had")]
    Refused(#[from] TailError),
    #[error("the connection failed")]
    Io(#[from] io::Error),
    #[error("the server says: {message} ({code})")]
    Server { code: String, message: String },
    #[error("the connection cannot be made")]
    Connecting(#[source] Box<ConnectFailure>),
    #[error("the server speaks no TLS, and sslmode asks for it")]
    NoTls,
    #[error("the server wants to be convinced in a way that is not known here")]
    Authentication,
    #[error("what the server sends is not understood: {0}")]
    Garbled(&'static str),
    #[error("the server ended the stream")]
    Closed,
    #[error("nothing was heard from the server for too long")]
    Silent,
    #[error("the slot is not on the server that has the table")]
    Elsewhere,
    #[error("a statement beside the stream failed")]
    Statement(#[source] hapax_core::StoreError),
}

impl StreamEnd {
    pub(super) fn connecting(failure: ConnectFailure) -> Self {
        Self::Connecting(Box::new(failure))
    }
}

impl From<Elapsed> for StreamEnd {
    fn from(_: Elapsed) -> Self {
        Self::Silent
    }
}

impl From<StatementFailure> for StreamEnd {
    fn from(failure: StatementFailure) -> Self {
        Self::Statement(failure.into())
    }
}
