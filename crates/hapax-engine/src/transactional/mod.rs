//! Operations whose effect is in a database: claim, effect and outcome in one transaction.
//!
//! [`Transactional::once`] begins a transaction, claims in it, lends it to the work, stores what the
//! work answered, and commits. Whatever goes wrong before the commit, nothing has happened. The
//! whole unit runs to its end even if nobody waits for it any more, so that no connection is left
//! with an open transaction.

mod error;
mod tx;
mod unit;

use std::{fmt, sync::Arc, time::Duration};

pub use hapax_core::transaction::{Answered, Fate};
use hapax_core::{
    Database, Fingerprint, Operation, Outcome, Policy, RequestParts, Salt, TransactionError,
    retry::{Backoff, Jitter, Schedule},
};
use tokio::sync::OnceCell;

pub use self::{
    error::{OnceError, TryAgain},
    tx::Tx,
};
use crate::detached::Detached;

/// An error of the caller's own, as work returns it.
pub type WorkError = Box<dyn std::error::Error + Send + Sync>;

/// Runs operations inside transactions of one database. Clones share it.
#[derive(Clone)]
pub struct Transactional<D> {
    database: D,
    options: TransactionOptions,
    salt: Arc<OnceCell<Salt>>,
}

/// How operations in transactions are treated.
#[derive(Debug, Clone, Copy)]
pub struct TransactionOptions {
    /// Retention, and what an answer means.
    pub policy: Policy,
    /// How long to wait for another transaction with the same operation before it is busy.
    pub wait: Duration,
    /// How long the work may take before everything is rolled back.
    pub timeout: Duration,
    /// How often, and after which pauses, the whole unit is tried again when another transaction was
    /// in its way.
    pub conflicts: Schedule,
}

impl Default for TransactionOptions {
    /// The default policy, two seconds for others, thirty for the work, and up to six tries.
    fn default() -> Self {
        let backoff = Backoff {
            jitter: Jitter::Full,
            base: Duration::from_millis(5),
            cap: Duration::from_millis(200),
        };
        Self {
            policy: Policy::default(),
            wait: Duration::from_secs(2),
            timeout: Duration::from_secs(30),
            conflicts: Schedule::new(backoff, 6).unwrap_or_default(),
        }
    }
}

impl<D: Database> Transactional<D> {
    /// Runs operations inside transactions of this database.
    pub fn new(database: D, options: TransactionOptions) -> Self {
        Self { database, options, salt: Arc::default() }
    }

    /// Runs `work` once for this operation, inside a transaction that also stores its answer.
    ///
    /// The work gets the transaction, writes through it, and answers. What the answer means is the
    /// policy's word: by default it is committed with the writes (2xx), kept without them (4xx), or
    /// everything is rolled back (5xx, an error, a panic, the timeout). It may be called again from
    /// the start when another transaction was in the way.
    ///
    /// Dropping the returned future does not stop it.
    pub async fn once<W, F, E>(
        &self,
        operation: Operation,
        request: &RequestParts<'_>,
        work: W,
    ) -> Result<Answered, OnceError>
    where
        W: FnMut(Tx<D::Transaction>) -> F + Send + 'static,
        F: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: Into<WorkError> + Send + 'static,
    {
        let salt = self.salt().await?;
        let fingerprint = salt.tenant_key(operation.tenant()).fingerprint(request);
        self.run(operation, fingerprint, self.options, work).await
    }

    /// Like [`Transactional::once`], for a request whose fingerprint is known, under options of its
    /// own.
    pub async fn run<W, F, E>(
        &self,
        operation: Operation,
        fingerprint: Fingerprint,
        options: TransactionOptions,
        work: W,
    ) -> Result<Answered, OnceError>
    where
        W: FnMut(Tx<D::Transaction>) -> F + Send + 'static,
        F: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: Into<WorkError> + Send + 'static,
    {
        let unit = unit::Unit::new(self.database.clone(), operation, fingerprint, options);
        Detached::new(unit.run(work), drop).await
    }

    /// The salt of the store in the database, which keys all fingerprints.
    pub async fn salt(&self) -> Result<Salt, TransactionError> {
        self.salt.get_or_try_init(|| self.database.salt()).await.copied()
    }

    /// The options every operation has that brings none of its own.
    pub fn options(&self) -> &TransactionOptions {
        &self.options
    }
}

impl<D> fmt::Debug for Transactional<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transactional").field("options", &self.options).finish_non_exhaustive()
    }
}
