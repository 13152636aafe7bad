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

pub use hapax_core::transaction::{Answered, Fate, KeyLook};
use hapax_core::{
    AttemptAnswer, Database, Fingerprint, Operation, Outcome, Policy, RequestParts, Salt,
    Timestamp, TransactionError,
    retry::{Backoff, Jitter, Schedule},
};
use tokio::sync::OnceCell;

pub use self::{
    error::{InTransactionError, TryAgain},
    tx::{Lender, Tx, lend},
};
use crate::detached_task::Detached;

/// An error of the caller's own, as work returns it.
pub type WorkError = Box<dyn std::error::Error + Send + Sync>;

/// Runs operations inside transactions of one database. Clones share it.
///
/// ```
/// use hapax_core::{AttemptAnswer, Database, Operation, Outcome, RequestParts};
/// use hapax_engine::{Answered, InTransactionError, Transactional};
///
/// async fn pay<D: Database>(
///     hapax: &Transactional<D>,
///     operation: Operation,
/// ) -> Result<Answered, InTransactionError> {
///     let request = RequestParts { body: b"100", ..RequestParts::default() };
///     let paying = hapax.once(operation, &request, |tx| async move {
///         // Write through `tx`, which is the driver's own connection inside.
///         println!("attempt {}", tx.attempt().fence.get());
///         Ok::<_, std::io::Error>(AttemptAnswer::completed(Outcome::bare(201)))
///     });
///     paying.await
/// }
/// ```
#[derive(Clone)]
pub struct Transactional<D> {
    database: D,
    options: TransactionOptions,
    salt: Arc<OnceCell<Salt>>,
}

/// How operations in transactions are treated.
///
/// ```
/// use std::time::Duration;
///
/// use hapax_engine::TransactionOptions;
///
/// let wait = Duration::from_secs(10);
/// let options = TransactionOptions { wait, ..TransactionOptions::default() };
/// assert_eq!(options.conflicts.attempts_max(), 6);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct TransactionOptions {
    /// Retention, and what recovery may do.
    pub policy: Policy,
    /// When what is stored is looked at: before the work, or when its outcome is stored.
    pub look: KeyLook,
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
            look: KeyLook::AtBegin,
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
    /// The work gets the transaction, writes through it, answers, and says what its answer means: one
    /// that completed the operation is committed with the writes, one that failed it is kept without
    /// them. After any other, an error, a panic or the timeout everything is rolled back. It may be
    /// called again from the start when another transaction was in the way.
    ///
    /// Dropping the returned future does not stop it.
    pub async fn once<W, F, E>(
        &self,
        operation: Operation,
        request: &RequestParts<'_>,
        work: W,
    ) -> Result<Answered, InTransactionError>
    where
        W: FnMut(Tx<D::Transaction>) -> F + Send + 'static,
        F: Future<Output = Result<AttemptAnswer, E>> + Send + 'static,
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
        mut work: W,
    ) -> Result<Answered, InTransactionError>
    where
        W: FnMut(Tx<D::Transaction>) -> F + Send + 'static,
        F: Future<Output = Result<AttemptAnswer, E>> + Send + 'static,
        E: Into<WorkError> + Send + 'static,
    {
        let work = move |tx| {
            let working = work(tx);
            async move { working.await.map(|answer| (answer.clone(), answer.outcome)) }
        };
        Ok(self.complete(operation, fingerprint, options, work).await?.into())
    }

    /// Like [`Transactional::run`], for work that returns something beside its answer: for this
    /// caller alone, and not kept.
    pub async fn complete<W, F, T, E>(
        &self,
        operation: Operation,
        fingerprint: Fingerprint,
        options: TransactionOptions,
        work: W,
    ) -> Result<Completion<T>, InTransactionError>
    where
        W: FnMut(Tx<D::Transaction>) -> F + Send + 'static,
        F: Future<Output = Result<(AttemptAnswer, T), E>> + Send + 'static,
        T: Send + 'static,
        E: Into<WorkError> + Send + 'static,
    {
        let unit =
            unit::TransactionRun::new(self.database.clone(), operation, fingerprint, options);
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

/// What an operation in a transaction came to.
#[derive(Debug)]
pub enum Completion<T> {
    /// It was run now, and its answer committed; with its writes where they were not taken back.
    Stored {
        /// What the work returned beside its answer.
        value: T,
        /// Until when its outcome is answered from.
        expires_at: Timestamp,
    },
    /// It was run now and says to try again: everything was rolled back, and the key is free.
    RolledBack {
        /// What the work returned beside its answer.
        value: T,
    },
    /// It had been run before: nothing was run now.
    Replayed {
        /// What it came to then.
        outcome: Outcome,
        /// Until when that is answered from.
        expires_at: Timestamp,
    },
}

impl From<Completion<Outcome>> for Answered {
    fn from(completion: Completion<Outcome>) -> Self {
        match completion {
            Completion::Stored { value: outcome, expires_at } => {
                Self { outcome, fate: Fate::Stored { expires_at } }
            }
            Completion::RolledBack { value: outcome } => Self { outcome, fate: Fate::RolledBack },
            Completion::Replayed { outcome, expires_at } => {
                Self { outcome, fate: Fate::Replayed { expires_at } }
            }
        }
    }
}

impl<D> fmt::Debug for Transactional<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transactional").field("options", &self.options).finish_non_exhaustive()
    }
}
