//! Why the log cannot be followed at all.

use hapax_core::StoreError;

use super::prepare::PUBLICATION;
use crate::error::{OpenError, StatementFailure};

/// Why following the log was refused at the start, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TailError {
    /// No server answered, or it cannot be used.
    #[error("the database cannot be used")]
    Open(#[from] OpenError),
    /// The server does not write what could be followed.
    #[error(
        "wal_level is `{found}`: set `wal_level = logical` in postgresql.conf and restart the server"
    )]
    WalLevel {
        /// What it is set to.
        found: String,
    },
    /// Nothing limits what the server keeps for a slot, so that one could fill its disk.
    #[error(
        "max_slot_wal_keep_size is -1, so a slot could fill the server's disk: \
         set a limit in postgresql.conf, for example `max_slot_wal_keep_size = 4GB`, and reload it"
    )]
    Unlimited,
    /// The role may not replicate.
    #[error("role `{role}` may not replicate: run `ALTER ROLE \"{role}\" REPLICATION`")]
    NotAllowed {
        /// Which one.
        role: String,
    },
    /// What is to be streamed is not declared, and this process was told not to.
    #[error(
        "there is no publication `{PUBLICATION}`: \
         call `hapax_postgres::tail::prepare` once, as the owner of schema `hapax`"
    )]
    NoPublication,
    /// The publication of our name is not ours.
    #[error(
        "publication `{PUBLICATION}` does not publish every insert into hapax.outbox \
         via the partition root: drop it, and have it made again"
    )]
    PublicationDiffers,
    /// The server failed to say, or to do, what is needed.
    #[error(
        "a statement failed; the publication needs the owner of hapax.outbox, with CREATE on the database"
    )]
    Statement(#[source] StoreError),
}

impl From<StatementFailure> for TailError {
    fn from(failure: StatementFailure) -> Self {
        Self::Statement(failure.into())
    }
}
