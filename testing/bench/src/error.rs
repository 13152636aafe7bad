use std::{io, path::PathBuf};

use hapax::{BeginError, InvalidName, InvalidOutcome, SettleError, StoreError};

use super::{arms::RedisError, client::CallBenchError, http::HttpError};

/// Why nothing could be measured, as what to do about it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    #[error("--postgres is no PostgreSQL URL; write postgres://user@host:port/database, or none")]
    Url(#[source] tokio_postgres::Error),
    #[error("cannot use the temporary directory; set TMPDIR to one that can be written")]
    Directory(#[source] io::Error),
    #[error("cannot write {path}; give {option} a file that can be written")]
    Unsaved {
        path: PathBuf,
        option: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("interrupted before anything was measured")]
    CutShort,
    #[error("the signals that end a program cannot be heard")]
    Signals(#[source] io::Error),
    #[error("cannot print the report")]
    Print(#[source] io::Error),
    #[error("cannot start the threads the callers run on")]
    Runtime(#[source] io::Error),
    #[error("cannot read what the system says about a process")]
    Proc(#[source] io::Error),
    #[error(
        "PostgreSQL refused; check that --postgres is reachable and its user may create databases"
    )]
    Postgres(#[from] tokio_postgres::Error),
    #[error("the PostgreSQL store cannot be opened")]
    OpenPostgres(#[from] hapax::postgres::OpenError),
    #[error("SQLite refused; check that the temporary directory has room")]
    Sqlite(#[from] rusqlite::Error),
    #[error("the SQLite store cannot be opened")]
    OpenSqlite(#[from] hapax::sqlite::OpenError),
    #[error("an operation could not begin")]
    Begin(#[from] BeginError),
    #[error("an operation could not be settled")]
    Settle(#[from] SettleError),
    #[error("the store could not be read")]
    Store(#[from] StoreError),
    #[error("an operation's name was refused")]
    Name(#[from] InvalidName),
    #[error("an outcome was refused")]
    Outcome(#[from] InvalidOutcome),
    #[error("a fresh key was answered with {found}")]
    NotFresh { found: &'static str },
    #[error("a finished operation was answered with {found}")]
    NotReplayed { found: &'static str },
    #[error("the pool has no connection left")]
    PoolEmpty,
    #[error("an operation in a transaction has no answer")]
    Once(#[source] Box<hapax::InTransactionError>),
    #[error("only PostgreSQL is measured here; leave out --postgres none")]
    OnlyPostgres,
    #[error("PostgreSQL cannot be started; give --postgres a server to use")]
    NoServer(#[source] super::server::Unstarted),
    #[error(
        "the server of --postgres has no TLS; leave out --postgres, or set ssl = on and a certificate there"
    )]
    NoTls,
    #[error("a collector of OpenTelemetry cannot be started")]
    Collector(#[source] hapax_services::ServiceError),
    #[error("a store cannot be encrypted")]
    Encryption(#[from] hapax::EncryptionError),
    #[error(
        "the dashboard does not answer as its page expects; give --program the `hapax` of this version"
    )]
    Dashboard(#[source] reqwest::Error),
    #[error(
        "the dashboard took a token and gave no session; give --program the `hapax` of this version"
    )]
    NotSignedIn,
    #[error("Redis cannot be started")]
    Redis(#[source] hapax_services::ServiceError),
    #[error(transparent)]
    AskRedis(#[from] RedisError),
    #[error(transparent)]
    Http(#[from] HttpError),
    #[error(transparent)]
    Client(#[from] CallBenchError),
    #[error("a destination's name was refused")]
    Destination(#[from] hapax::outbox::InvalidDestination),
    #[error("an event was refused")]
    Event(#[from] hapax::outbox::InvalidEvent),
    #[error("a message could not be acted on")]
    Transaction(#[from] hapax::TransactionError),
    #[error("statements can only be counted on the way to a server that listens on TCP")]
    Uncounted(#[source] io::Error),
    #[error("the relay ended")]
    Relay(#[from] hapax::messaging::relay::RelayError),
    #[error("a caller ended early")]
    Caller(#[from] tokio::task::JoinError),
}

impl BenchError {
    /// Whether something is not there that a machine need not have.
    pub(super) fn is_absence(&self) -> bool {
        matches!(
            self,
            Self::NoServer(_)
                | Self::OnlyPostgres
                | Self::NoTls
                | Self::Collector(_)
                | Self::Redis(_)
                | Self::Http(HttpError::Service(_))
        )
    }
}
