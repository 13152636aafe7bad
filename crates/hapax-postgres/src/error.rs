//! What went wrong, as a decision for the caller.

use std::{
    error::Error,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hapax_core::{Injected, OneLine, StoreError, store::Cause};
use hapax_sql::TransactionFault;
use tokio::time::Instant;
use tokio_postgres::error::{DbError, Severity, SqlState};

use crate::{connect::ConnectFailure, migrate::VERSION, server::SERVER_MIN};

/// Why a store could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No server answered, or it turned us away.
    #[error("cannot connect to PostgreSQL")]
    Connect(#[source] Box<ConnectFailure>),
    /// The server has no database of this name.
    #[error("the database does not exist: create it with `createdb`, or correct the name")]
    NoDatabase(#[source] tokio_postgres::Error),
    /// The server accepts no writes.
    #[error("the server is read-only, a standby perhaps: connect to the primary")]
    ReadOnly,
    /// The server does not understand us, or forbids what we need.
    #[error(
        "the server cannot be used: PostgreSQL 14 or newer and a role that owns schema `hapax` are needed"
    )]
    Unusable(#[source] tokio_postgres::Error),
    /// The server is older than what we are written for.
    #[error("the server is PostgreSQL {found}: version {SERVER_MIN} or newer is needed")]
    TooOld {
        /// Its major version.
        found: u32,
    },
    /// Something between us and the server gives each transaction another session.
    #[error(
        "a pooler between here and PostgreSQL (PgBouncer, perhaps) does not keep sessions apart: \
         connect to PostgreSQL itself, or have it pool by session (`pool_mode = session`)"
    )]
    Pooled(#[source] Option<tokio_postgres::Error>),
    /// Two sessions were given the same advisory lock.
    #[error(
        "the server's advisory locks do nothing: it speaks PostgreSQL's protocol (as CockroachDB does) \
         and cannot keep two transactions apart; use PostgreSQL itself"
    )]
    NoLocks(#[source] Option<tokio_postgres::Error>),
    /// The schema has never been created, or is older than this version needs.
    #[error("the schema has version {found}, this version needs {VERSION}: run `hapax migrate`")]
    NotMigrated {
        /// The version found; zero where there is no schema.
        found: i32,
    },
    /// A newer version has changed the schema so that this one cannot use it.
    #[error(
        "the schema has version {found} and needs code for version {needed} or newer; this is {VERSION}: upgrade this process"
    )]
    TooNew {
        /// The version found.
        found: i32,
        /// The oldest version that can use it.
        needed: i32,
    },
    /// The schema was made by a version that was never released, and cannot be upgraded.
    #[error(
        "the schema has version {found}, which was never released: move what you need out of it, `DROP SCHEMA hapax CASCADE`, then run `hapax migrate`"
    )]
    NeverReleased {
        /// The version found.
        found: i32,
    },
    /// A migration was rolled back.
    #[error("migration {version} failed and was rolled back; nothing has changed")]
    Migration {
        /// Which one.
        version: i32,
        /// What the server said.
        #[source]
        source: tokio_postgres::Error,
    },
    /// Another database answers in place of the one that was spoken to: after a failover, a restore, or by mistake.
    #[error("another database answers ({found}) in place of the one before ({admitted})")]
    OtherIncarnation {
        /// The one that was spoken to.
        admitted: String,
        /// The one that answers.
        found: String,
    },
    /// The stored salt is not thirty-two bytes.
    #[error("the stored salt is damaged: restore table `hapax.meta` from a backup")]
    DamagedSalt,
}

impl From<ConnectFailure> for OpenError {
    fn from(failure: ConnectFailure) -> Self {
        match failure {
            ConnectFailure::NoDatabase { source, .. } => Self::NoDatabase(source),
            ConnectFailure::ReadOnly { .. } => Self::ReadOnly,
            other @ (ConnectFailure::Address(_)
            | ConnectFailure::Unreachable { .. }
            | ConnectFailure::TooSlow { .. }
            | ConnectFailure::NoTls { .. }
            | ConnectFailure::PlaintextPassword { .. }
            | ConnectFailure::Certificate { .. }
            | ConnectFailure::Tls { .. }
            | ConnectFailure::NoPassword { .. }
            | ConnectFailure::WrongPassword { .. }
            | ConnectFailure::PasswordCommand(_)
            | ConnectFailure::Refused { .. }
            | ConnectFailure::Several { .. }) => Self::Connect(Box::new(other)),
        }
    }
}

/// Why a statement has no answer.
#[derive(Debug, Clone)]
pub(crate) enum StatementFailure {
    /// It was never sent.
    NotSent(Cause),
    /// The server refused it and rolled it back.
    Refused(Arc<tokio_postgres::Error>),
    /// It was sent, and nobody said what became of it.
    Unanswered(Cause),
}

impl StatementFailure {
    pub(crate) fn not_sent(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::NotSent(Arc::from(cause.into()))
    }

    pub(crate) fn unanswered(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unanswered(Arc::from(cause.into()))
    }

    /// An answer that cannot be read: the schema is not ours.
    pub(crate) fn of_row(fault: TransactionFault) -> Self {
        match fault {
            TransactionFault::Conflict(cause)
            | TransactionFault::Taken(cause)
            | TransactionFault::Refused { cause, .. }
            | TransactionFault::Damaged(cause)
            | TransactionFault::TooNew(cause)
            | TransactionFault::Unanswered(cause) => Self::Unanswered(cause),
        }
    }

    /// Preparing writes nothing, whatever became of it.
    pub(crate) fn before_sending(self) -> Self {
        match self {
            Self::Unanswered(cause) => Self::NotSent(cause),
            Self::NotSent(_) | Self::Refused(_) => self,
        }
    }

    /// Whether the same statement may well succeed if it is sent again at once.
    pub(crate) fn is_passing(&self) -> bool {
        const PASSING: [SqlState; 3] = [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::LOCK_NOT_AVAILABLE,
        ];
        self.code().is_some_and(|code| PASSING.contains(code))
    }

    /// Whether the connection, or what was prepared on it, cannot be trusted any more.
    pub(crate) fn spoils_the_connection(&self) -> bool {
        match self {
            Self::NotSent(_) => false,
            Self::Unanswered(_) => true,
            Self::Refused(_) => self.code().is_some_and(|code| {
                *code == SqlState::FEATURE_NOT_SUPPORTED
                    || *code == SqlState::INVALID_SQL_STATEMENT_NAME
                    || *code == SqlState::READ_ONLY_SQL_TRANSACTION
            }),
        }
    }

    fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Refused(error) => error.code(),
            Self::NotSent(_) | Self::Unanswered(_) => None,
        }
    }
}

impl From<tokio_postgres::Error> for StatementFailure {
    /// An error the server reports in a statement that commits by itself means that it was rolled
    /// back. A fatal one ends the session, and may come when the commit is already done.
    fn from(error: tokio_postgres::Error) -> Self {
        match error.as_db_error().and_then(DbError::parsed_severity) {
            Some(Severity::Error) => Self::Refused(Arc::new(error)),
            Some(_) | None => Self::unanswered(error),
        }
    }
}

impl From<StatementFailure> for StoreError {
    fn from(failure: StatementFailure) -> Self {
        match failure {
            StatementFailure::NotSent(cause) => Self::Unavailable(cause),
            StatementFailure::Refused(error) => Self::Unavailable(error),
            StatementFailure::Unanswered(cause) => Self::Unconfirmed(cause),
        }
    }
}

/// Says why the store cannot be used, at most once in a while: whoever is refused meanwhile is refused
/// for the same cause, or for one that comes up again.
#[derive(Debug, Default)]
pub(crate) struct Complaints {
    last: Mutex<Option<Instant>>,
}

impl Complaints {
    pub(crate) fn raise(&self, failure: &StatementFailure) {
        let now = Instant::now();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| now.duration_since(last) >= COMPLAINTS_APART) {
            *last = Some(now);
            tracing::warn!(cause = %failure, "PostgreSQL did not do what was asked of it");
        }
    }
}

/// The least time between two complaints.
const COMPLAINTS_APART: Duration = Duration::from_secs(1);

impl fmt::Display for StatementFailure {
    /// The whole chain of causes, in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error: &dyn Error = match self {
            Self::NotSent(cause) | Self::Unanswered(cause) => &**cause,
            Self::Refused(error) => &**error,
        };
        OneLine::of(error).fmt(f)
    }
}

/// The meaning of a failure for a call that only reads.
pub(crate) fn reading(failure: StatementFailure) -> StoreError {
    failure.before_sending().into()
}

/// A fault before a statement is sent.
pub(crate) fn before(injected: Injected) -> StatementFailure {
    StatementFailure::not_sent(injected)
}

/// A fault after a statement was sent, before its answer is believed.
pub(crate) fn after(injected: Injected) -> StatementFailure {
    StatementFailure::unanswered(injected)
}
