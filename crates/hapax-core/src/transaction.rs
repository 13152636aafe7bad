//! The contract of a database whose transactions hold our records beside the caller's own writes.
//!
//! Claim, business writes, events and outcome commit or vanish together. A record is therefore
//! never seen while its attempt runs: whoever comes second waits for the first transaction to end,
//! and then finds either its outcome or nothing at all.

use std::{error::Error, time::Duration};

use crate::{
    decide::{Arrival, Decision, RunMode},
    fingerprint::{Difference, Fingerprint, Salt},
    operation::Operation,
    outcome::Outcome,
    policy::{Policy, Recovery},
    record::{Doubt, Fence, Owner, Record},
    settle::Attempt,
    store::{Cause, Claim, Over, Settlement, StoreError},
    time::Timestamp,
};

/// A database that can keep a record and the caller's own writes in one transaction.
///
/// None of its calls is ever dropped half-way: whoever drives it runs in a task of its own.
pub trait Database: Clone + Send + Sync + 'static {
    /// A transaction that holds a claim. Dropped without an end, it is rolled back; a connection
    /// with an open transaction never returns to a pool.
    type Transaction: Send + 'static;

    /// The salt of the store in this database.
    fn salt(&self) -> impl Future<Output = Result<Salt, TransactionError>> + Send;

    /// Begins a transaction and looks at what is stored, waiting up to [`Entrance::wait`] while
    /// another transaction has the same operation.
    fn begin(
        &self,
        entrance: &Entrance,
    ) -> impl Future<Output = Result<Entered<Self::Transaction>, TransactionError>> + Send;

    /// Begins a transaction without a look: as if the operation were new, which only
    /// [`Database::finish`] finds out. A database that looks for nothing extra does so here, too.
    fn begin_unseen(
        &self,
        entrance: &Entrance,
    ) -> impl Future<Output = Result<Entered<Self::Transaction>, TransactionError>> + Send {
        self.begin(entrance)
    }

    /// Stores how the attempt ended, and commits; until when that is kept.
    fn finish(
        &self,
        transaction: Self::Transaction,
        end: &End,
    ) -> impl Future<Output = Result<Timestamp, TransactionError>> + Send;

    /// Takes back everything the work did, and stores how the attempt ended; until when that is kept.
    fn fail(
        &self,
        transaction: Self::Transaction,
        end: &End,
    ) -> impl Future<Output = Result<Timestamp, TransactionError>> + Send;

    /// Takes back everything, the claim included.
    fn roll_back(&self, transaction: Self::Transaction) -> impl Future<Output = ()> + Send;

    /// What is stored once the transaction of this attempt has ended for certain: to be asked when
    /// its commit was not confirmed.
    fn find_out(
        &self,
        attempt: &Attempt,
    ) -> impl Future<Output = Result<Option<Record>, TransactionError>> + Send;

    /// Whether this error of the caller's own statements means that another transaction was in the
    /// way, so that the whole unit may be tried again.
    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool;
}

/// An operation at the door of a transaction.
#[derive(Debug, Clone)]
pub struct Entrance {
    /// Which operation.
    pub operation: Operation,
    /// With which request.
    pub fingerprint: Fingerprint,
    /// The name this attempt would run under.
    pub owner: Owner,
    /// How it is treated; its lease does not matter here.
    pub policy: Policy,
    /// How long to wait for another transaction with the same operation.
    pub wait: Duration,
}

/// When a transaction looks at what is stored about its operation.
///
/// ```
/// use hapax_core::transaction::KeyLook;
///
/// assert_eq!(KeyLook::default(), KeyLook::AtBegin);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum KeyLook {
    /// Before the work: a duplicate waits for the first, and is answered without being run.
    #[default]
    AtBegin,
    /// When the outcome is stored: cheaper for what is new, but a duplicate is run too, rolled back,
    /// and then answered. For work that does nothing outside of the transaction.
    AtEnd,
}

/// What came of an operation at the door.
#[derive(Debug)]
pub enum Entered<T> {
    /// Run it in this transaction.
    Execute(Granted<T>),
    /// Do not: this is why.
    Answer(TransactionAnswer),
}

/// The right to run an operation in a transaction.
#[derive(Debug)]
pub struct Granted<T> {
    /// The transaction.
    pub transaction: T,
    /// The attempt: its fence goes downstream with the key.
    pub attempt: Attempt,
}

/// Why an operation is not run in a transaction.
///
/// ```
/// use hapax_core::transaction::TransactionAnswer;
///
/// fn told(answer: &TransactionAnswer) -> String {
///     match answer {
///         TransactionAnswer::Replay(_) => "done before".to_owned(),
///         TransactionAnswer::Busy { retry_after } => format!("ask again in {retry_after:?}"),
///         TransactionAnswer::InDoubt { .. } => "somebody has to look".to_owned(),
///         TransactionAnswer::Mismatch(_) => "the key belongs to another request".to_owned(),
///         TransactionAnswer::Gone { since } => format!("forgotten since {since}"),
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub enum TransactionAnswer {
    /// It is finished: answer with the outcome of this record.
    Replay(Box<Record>),
    /// Another attempt is at it.
    Busy {
        /// When it is worth asking again.
        retry_after: Duration,
    },
    /// Nobody knows whether it happened, and a transaction cannot find out.
    InDoubt {
        /// Why that is unknown.
        doubt: Doubt,
    },
    /// The key was used for another request.
    Mismatch(Difference),
    /// The key was used, and its outcome is past retention.
    Gone {
        /// When the outcome expired.
        since: Timestamp,
    },
}

/// How an attempt in a transaction ended: only what is worth a commit.
#[derive(Debug, Clone)]
pub struct End {
    /// [`Settlement::Completed`] or [`Settlement::Failed`].
    pub to: Settlement,
    /// The record lives at least this long from now.
    pub keep: Duration,
}

/// What an operation answered.
///
/// ```
/// use hapax_core::transaction::{Answered, Fate};
///
/// fn told(answered: &Answered) -> &'static str {
///     match answered.fate {
///         Fate::Stored { .. } => "done now",
///         Fate::Replayed { .. } => "done before",
///         Fate::RolledBack => "not done; ask again",
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Answered {
    /// The answer.
    pub outcome: Outcome,
    /// What became of it.
    pub fate: Fate,
}

/// What became of an answer.
///
/// ```
/// use hapax_core::{Timestamp, transaction::Fate};
///
/// fn ran_now(fate: Fate) -> bool {
///     match fate {
///         Fate::Stored { .. } | Fate::RolledBack => true,
///         Fate::Replayed { .. } => false,
///     }
/// }
/// assert!(!ran_now(Fate::Replayed { expires_at: Timestamp::ZERO }));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was given now, and committed; with the writes of the work where they were not taken back.
    Stored {
        /// Until when it is answered from.
        expires_at: Timestamp,
    },
    /// It was given before: nothing was run.
    Replayed {
        /// Until when it is answered from.
        expires_at: Timestamp,
    },
    /// It says to try again: everything was rolled back, and the key is free.
    RolledBack,
}

/// Why a transaction did not do what it was asked to.
#[derive(Debug, Clone, thiserror::Error)]
pub enum TransactionError {
    /// Another transaction was in the way, and everything was rolled back: the whole unit may be
    /// tried again.
    #[error("another transaction was in the way; everything was rolled back")]
    Conflict(#[source] Cause),
    /// The operation was not new after all: another record of it is there, or another transaction
    /// has it. Everything was rolled back; whoever looks now finds it.
    #[error("the operation was not new; everything was rolled back")]
    Taken(#[source] Cause),
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl TransactionError {
    /// The operation was not new, and everything was rolled back.
    pub fn taken(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Taken(Cause::from(cause.into()))
    }

    /// Another transaction was in the way, and everything was rolled back.
    pub fn conflict(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Conflict(Cause::from(cause.into()))
    }
}

/// Outside of a caller's transaction there is nothing to try again as a whole.
impl From<TransactionError> for StoreError {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::Conflict(cause) | TransactionError::Taken(cause) => {
                Self::Unavailable(cause)
            }
            TransactionError::Store(error) => error,
        }
    }
}

impl Entrance {
    /// The claim to write where nothing is stored yet.
    pub fn first_claim(&self) -> Claim {
        self.arrival().claim(Over::Nothing, Fence::FIRST, &self.policy)
    }

    /// The arrival that the machine decides about.
    pub fn arrival(&self) -> Arrival {
        Arrival {
            operation: self.operation.clone(),
            fingerprint: self.fingerprint,
            owner: self.owner,
            mode: RunMode::Run { request: None },
        }
    }
}

/// What a transaction does with a decision of the machine: write this claim, or answer.
///
/// The owner of a leased attempt may be followed where repeating is allowed. Where it would have to
/// be asked for first, a transaction cannot: that is left to whoever can.
pub fn enter(
    now: Timestamp,
    decision: Decision,
    found: Option<&Record>,
) -> Result<Claim, TransactionAnswer> {
    let vanished = || TransactionAnswer::InDoubt { doubt: Doubt::OwnerVanished };
    match decision {
        Decision::Execute(claim) | Decision::TakeOver { claim, recovery: Recovery::Resend, .. } => {
            Ok(claim)
        }
        Decision::TakeOver { recovery: Recovery::Probe | Recovery::Hold, .. }
        | Decision::GiveUp => Err(vanished()),
        Decision::Busy { until } => Err(TransactionAnswer::Busy { retry_after: until.after(now) }),
        Decision::Replay => Err(found
            .map_or_else(vanished, |record| TransactionAnswer::Replay(Box::new(record.clone())))),
        Decision::InDoubt { doubt } => Err(TransactionAnswer::InDoubt { doubt }),
        Decision::Mismatch(difference) => Err(TransactionAnswer::Mismatch(difference)),
        Decision::Gone { since } => Err(TransactionAnswer::Gone { since }),
    }
}
