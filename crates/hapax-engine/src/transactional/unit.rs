//! One operation in one transaction: begin, work, store, commit; again, where others were in the way.

use std::{error::Error, panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use hapax_core::{
    Attempt, AttemptAnswer, AttemptEnd, Database, Fingerprint, Operation, Owner, StoreError,
    TransactionError, settle,
    store::{Cause, Settle, Settlement},
    transaction::{End, Entered, Entrance, Granted, KeyLook, TransactionAnswer},
};
use tokio::time::{sleep, timeout};

use super::{Completion, InTransactionError, TransactionOptions, TryAgain, Tx, WorkError, lend};

/// Times it is asked what became of a commit that was not confirmed.
const QUESTIONS_MAX: u32 = 8;
/// The first pause between two such questions; each further one is twice as long.
const QUESTION_PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct TransactionRun<D> {
    database: D,
    entrance: Entrance,
    /// When the next attempt looks: once somebody was met, at its begin.
    look: KeyLook,
    options: TransactionOptions,
}

impl<D: Database> TransactionRun<D> {
    pub(crate) fn new(
        database: D,
        operation: Operation,
        fingerprint: Fingerprint,
        options: TransactionOptions,
    ) -> Self {
        let (policy, wait) = (options.policy, options.wait);
        let entrance = Entrance { operation, fingerprint, owner: Owner::draw(), policy, wait };
        Self { database, entrance, look: options.look, options }
    }

    /// Tries until nobody is in the way, within the schedule.
    pub(crate) async fn run<W, F, T, E>(
        mut self,
        mut work: W,
    ) -> Result<Completion<T>, InTransactionError>
    where
        W: FnMut(Tx<D::Transaction>) -> F + Send + 'static,
        F: Future<Output = Result<(AttemptAnswer, T), E>> + Send + 'static,
        T: Send + 'static,
        E: Into<WorkError> + Send + 'static,
    {
        let (mut tries, mut pause) = (1, Duration::ZERO);
        loop {
            let (conflict, taken) = match self.attempt(&mut work).await {
                Ok(completion) => return self.unless_done_before(Ok(completion)).await,
                Err(Interruption::Ended(error)) => {
                    return self.unless_done_before(Err(error)).await;
                }
                Err(Interruption::Conflict(cause)) => (cause, false),
                Err(Interruption::Taken(cause)) => (cause, true),
            };
            let next = self.options.conflicts.pause(tries, pause, fastrand::u64(..));
            let Some(next) = next else { return Err(InTransactionError::Conflict(conflict)) };
            tracing::debug!(tries, error = %conflict, "another transaction was in the way");
            // Somebody else's record is there to be looked at, at once.
            (tries, pause) = (tries + 1, if taken { Duration::ZERO } else { next });
            sleep(pause).await;
            self.entrance.owner = Owner::draw();
            self.look = KeyLook::AtBegin;
        }
    }

    /// What ended without a commit, and was run without a look, may have been a duplicate: then that
    /// is the answer.
    async fn unless_done_before<T>(
        &self,
        ended: Result<Completion<T>, InTransactionError>,
    ) -> Result<Completion<T>, InTransactionError> {
        let nothing_stored = match &ended {
            Ok(Completion::Stored { .. } | Completion::Replayed { .. }) => false,
            Ok(Completion::RolledBack { .. }) => true,
            Err(
                InTransactionError::Failed(_)
                | InTransactionError::Panicked
                | InTransactionError::TimedOut { .. },
            ) => true,
            Err(
                InTransactionError::Refused(_)
                | InTransactionError::Kept
                | InTransactionError::Conflict(_)
                | InTransactionError::Store(_)
                | InTransactionError::Unknown(_),
            ) => false,
        };
        if self.look == KeyLook::AtBegin || !nothing_stored {
            return ended;
        }
        match self.database.begin(&self.entrance).await? {
            Entered::Answer(answer) => told(answer),
            Entered::Execute(granted) => {
                self.database.roll_back(granted.transaction).await;
                ended
            }
        }
    }

    async fn attempt<W, F, T, E>(&self, work: &mut W) -> Result<Completion<T>, Interruption>
    where
        W: FnMut(Tx<D::Transaction>) -> F,
        F: Future<Output = Result<(AttemptAnswer, T), E>>,
        E: Into<WorkError> + Send,
    {
        let entered = match self.look {
            KeyLook::AtBegin => self.database.begin(&self.entrance).await?,
            KeyLook::AtEnd => self.database.begin_unseen(&self.entrance).await?,
        };
        let Granted { transaction, attempt } = match entered {
            Entered::Execute(granted) => granted,
            Entered::Answer(answer) => return Ok(told(answer)?),
        };
        let (tx, lender) = lend(transaction, attempt);
        let limit = self.options.timeout;
        // Calling the work is inside, too: it may panic before its future exists.
        let worked = AssertUnwindSafe(async { work(tx).await }).catch_unwind();
        let worked = timeout(limit, worked).await;
        let Some(transaction) = lender.take() else {
            return Err(Interruption::Ended(InTransactionError::Kept));
        };
        let failed = match worked {
            Ok(Ok(Ok(answer))) => return self.end(transaction, attempt, answer).await,
            Ok(Ok(Err(error))) => self.failed(error.into()),
            Ok(Err(_panic)) => Interruption::Ended(InTransactionError::Panicked),
            Err(_elapsed) => Interruption::Ended(InTransactionError::TimedOut { limit }),
        };
        self.database.roll_back(transaction).await;
        Err(failed)
    }

    fn failed(&self, error: WorkError) -> Interruption {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&*error);
        while let Some(error) = cause {
            if error.is::<TryAgain>() || self.database.is_conflict(error) {
                return Interruption::Conflict(words(error.to_string()));
            }
            cause = error.source();
        }
        Interruption::Ended(InTransactionError::Failed(error))
    }

    /// Does with the transaction what the answer means.
    async fn end<T>(
        &self,
        transaction: D::Transaction,
        attempt: Attempt,
        (answer, value): (AttemptAnswer, T),
    ) -> Result<Completion<T>, Interruption> {
        let ended = AttemptEnd::Answered(answer);
        let Settle { to, keep, .. } = settle(&attempt, ended, &self.options.policy);
        let stored = match to {
            to @ Settlement::Completed(_) => {
                self.database.finish(transaction, &End { to, keep }).await
            }
            to @ Settlement::Failed(_) => self.database.fail(transaction, &End { to, keep }).await,
            Settlement::Released | Settlement::Declined | Settlement::InDoubt(_) => {
                self.database.roll_back(transaction).await;
                return Ok(Completion::RolledBack { value });
            }
        };
        match stored {
            Ok(expires_at) => Ok(Completion::Stored { value, expires_at }),
            Err(TransactionError::Store(lost @ StoreError::Unconfirmed(_))) => {
                tracing::warn!(operation = %attempt.id, "a commit was not confirmed; reading it again");
                self.find_out(attempt, value, lost).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The row is the truth about a commit that nobody confirmed.
    async fn find_out<T>(
        &self,
        attempt: Attempt,
        value: T,
        mut lost: StoreError,
    ) -> Result<Completion<T>, Interruption> {
        let mut pause = QUESTION_PAUSE;
        for _ in 0..QUESTIONS_MAX {
            match self.database.find_out(&attempt).await {
                Ok(Some(record)) if attempt.owns(&record) => {
                    return Ok(Completion::Stored { value, expires_at: record.expires_at });
                }
                Ok(_) => {
                    return Err(Interruption::Conflict(words("the commit did not arrive")));
                }
                Err(TransactionError::Conflict(cause) | TransactionError::Taken(cause)) => {
                    lost = StoreError::Unconfirmed(cause);
                }
                Err(TransactionError::Store(error)) => lost = error,
            }
            sleep(pause).await;
            pause *= 2;
        }
        Err(Interruption::Ended(InTransactionError::Unknown(lost)))
    }
}

/// Why an attempt has no end of its own.
enum Interruption {
    /// Others were in the way.
    Conflict(Cause),
    /// The operation was not new.
    Taken(Cause),
    /// This is the end of it.
    Ended(InTransactionError),
}

impl From<TransactionError> for Interruption {
    fn from(error: TransactionError) -> Self {
        match error {
            TransactionError::Conflict(cause) => Self::Conflict(cause),
            TransactionError::Taken(cause) => Self::Taken(cause),
            error @ TransactionError::Store(_) => Self::Ended(error.into()),
        }
    }
}

impl From<InTransactionError> for Interruption {
    fn from(error: InTransactionError) -> Self {
        Self::Ended(error)
    }
}

fn told<T>(answer: TransactionAnswer) -> Result<Completion<T>, InTransactionError> {
    match answer {
        TransactionAnswer::Replay(record) => match record.outcome() {
            Some(outcome) => {
                let (outcome, expires_at) = (outcome.clone(), record.expires_at);
                Ok(Completion::Replayed { outcome, expires_at })
            }
            None => {
                Err(InTransactionError::Store(StoreError::damaged("a replay without an outcome")))
            }
        },
        answer @ (TransactionAnswer::Busy { .. }
        | TransactionAnswer::InDoubt { .. }
        | TransactionAnswer::Mismatch(_)
        | TransactionAnswer::Gone { .. }) => Err(InTransactionError::Refused(answer)),
    }
}

/// A cause that is only words.
fn words(text: impl Into<Box<dyn Error + Send + Sync>>) -> Cause {
    Cause::from(text.into())
}
