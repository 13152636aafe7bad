//! Why a comparison came to no end.

use std::{error::Error, io};

use hapax_services::ServiceError;

use crate::wire::Wrong;

#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error("a server that is needed cannot be run")]
    Service(#[from] ServiceError),
    #[error("{what} failed")]
    System {
        what: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("the database server refused what a fresh database needs")]
    Database(#[from] tokio_postgres::Error),
    #[error("a request could not be made")]
    Wire(#[from] Wrong),
    #[error("{way} does not start")]
    Serve {
        way: &'static str,
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl BenchError {
    pub(crate) fn system(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::System { what, source }
    }
}

/// An error with all its causes, in one line.
pub(crate) fn sentence(error: &dyn Error) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        said.push_str(": ");
        said.push_str(&next.to_string());
        cause = next.source();
    }
    said
}
