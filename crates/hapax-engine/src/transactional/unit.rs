//! One operation in one transaction: begin, work, store, commit; again, where others were in the way.

use std::{error::Error, panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use hapax_core::{
    Attempt, AttemptAnswer, AttemptEnd, Database, Fingerprint, Operation, Owner, StoreError,
    Timestamp, TransactionError, settle,
    store::{Cause, Settle, Settlement},
    transaction::{End, Entered, Entrance, Granted, TransactionAnswer},
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
        Self { database, entrance, options }
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
            let conflict = match self.attempt(&mut work).await {
                Err(InTransactionError::Conflict(cause)) => cause,
                ended => return ended,
            };
            let next = self.options.conflicts.pause(tries, pause, fastrand::u64(..));
            let Some(next) = next else { return Err(InTransactionError::Conflict(conflict)) };
            tracing::debug!(tries, error = %conflict, "another transaction was in the way");
            (tries, pause) = (tries + 1, next);
            sleep(pause).await;
            self.entrance.owner = Owner::draw();
        }
    }

    async fn attempt<W, F, T, E>(&self, work: &mut W) -> Result<Completion<T>, InTransactionError>
    where
        W: FnMut(Tx<D::Transaction>) -> F,
        F: Future<Output = Result<(AttemptAnswer, T), E>>,
        E: Into<WorkError> + Send,
    {
        let Granted { transaction, attempt, expires_at } =
            match self.database.begin(&self.entrance).await? {
                Entered::Execute(granted) => granted,
                Entered::Answer(answer) => return told(answer),
            };
        let (tx, lender) = lend(transaction, attempt);
        let limit = self.options.timeout;
        // Calling the work is inside, too: it may panic before its future exists.
        let worked = AssertUnwindSafe(async { work(tx).await }).catch_unwind();
        let worked = timeout(limit, worked).await;
        let Some(transaction) = lender.take() else { return Err(InTransactionError::Kept) };
        let failed = match worked {
            Ok(Ok(Ok(answer))) => {
                return self.end(transaction, attempt, expires_at, answer).await;
            }
            Ok(Ok(Err(error))) => self.failed(error.into()),
            Ok(Err(_panic)) => InTransactionError::Panicked,
            Err(_elapsed) => InTransactionError::TimedOut { limit },
        };
        self.database.roll_back(transaction).await;
        Err(failed)
    }

    fn failed(&self, error: WorkError) -> InTransactionError {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&*error);
        while let Some(error) = cause {
            if error.is::<TryAgain>() || self.database.is_conflict(error) {
                return InTransactionError::Conflict(words(error.to_string()));
            }
            cause = error.source();
        }
        InTransactionError::Failed(error)
    }

    /// Does with the transaction what the answer means.
    async fn end<T>(
        &self,
        mut transaction: D::Transaction,
        attempt: Attempt,
        expires_at: Timestamp,
        (answer, value): (AttemptAnswer, T),
    ) -> Result<Completion<T>, InTransactionError> {
        let ended = AttemptEnd::Answered(answer);
        let Settle { to, keep, .. } = settle(&attempt, ended, &self.options.policy);
        let end = match to {
            to @ Settlement::Completed(_) => End { to, keep },
            to @ Settlement::Failed(_) => {
                self.database.undo(&mut transaction).await?;
                End { to, keep }
            }
            Settlement::Released | Settlement::Declined | Settlement::InDoubt(_) => {
                self.database.roll_back(transaction).await;
                return Ok(Completion::RolledBack { value });
            }
        };
        match self.database.finish(transaction, &end).await {
            Ok(()) => Ok(Completion::Stored { value, expires_at }),
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
    ) -> Result<Completion<T>, InTransactionError> {
        let mut pause = QUESTION_PAUSE;
        for _ in 0..QUESTIONS_MAX {
            match self.database.find_out(&attempt).await {
                Ok(Some(record))
                    if record.owner == attempt.owner && record.fence == attempt.fence =>
                {
                    return Ok(Completion::Stored { value, expires_at: record.expires_at });
                }
                Ok(_) => {
                    return Err(InTransactionError::Conflict(words("the commit did not arrive")));
                }
                Err(TransactionError::Conflict(cause)) => lost = StoreError::Unconfirmed(cause),
                Err(TransactionError::Store(error)) => lost = error,
            }
            sleep(pause).await;
            pause *= 2;
        }
        Err(InTransactionError::Unknown(lost))
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
