//! One operation in one transaction: begin, work, store, commit; again, where others were in the way.

use std::{error::Error, panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use hapax_core::{
    Attempt, Database, Ended, Fingerprint, Operation, Outcome, Owner, StoreError, Timestamp,
    TransactionError, settle,
    store::{Cause, Settle, Settlement},
    transaction::{Answer, End, Entered, Entrance, Granted},
};
use tokio::time::{sleep, timeout};

use super::{Answered, Fate, OnceError, TransactionOptions, TryAgain, Tx, WorkError, tx::lend};

/// Times it is asked what became of a commit that was not confirmed.
const QUESTIONS_MAX: u32 = 8;
/// The first pause between two such questions; each further one is twice as long.
const QUESTION_PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Unit<D> {
    database: D,
    entrance: Entrance,
    options: TransactionOptions,
}

impl<D: Database> Unit<D> {
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
    pub(crate) async fn run<W, F, E>(mut self, mut work: W) -> Result<Answered, OnceError>
    where
        W: FnMut(Tx<D::Transaction>) -> F + Send + 'static,
        F: Future<Output = Result<Outcome, E>> + Send + 'static,
        E: Into<WorkError> + Send + 'static,
    {
        let (mut tries, mut pause) = (1, Duration::ZERO);
        loop {
            let conflict = match self.attempt(&mut work).await {
                Err(OnceError::Conflict(cause)) => cause,
                ended => return ended,
            };
            let next = self.options.conflicts.pause(tries, pause, fastrand::u64(..));
            let Some(next) = next else { return Err(OnceError::Conflict(conflict)) };
            tracing::debug!(tries, error = %conflict, "another transaction was in the way");
            (tries, pause) = (tries + 1, next);
            sleep(pause).await;
            self.entrance.owner = Owner::draw();
        }
    }

    async fn attempt<W, F, E>(&self, work: &mut W) -> Result<Answered, OnceError>
    where
        W: FnMut(Tx<D::Transaction>) -> F,
        F: Future<Output = Result<Outcome, E>>,
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
        let Some(transaction) = lender.take() else { return Err(OnceError::Kept) };
        let failed = match worked {
            Ok(Ok(Ok(outcome))) => {
                return self.end(transaction, attempt, expires_at, outcome).await;
            }
            Ok(Ok(Err(error))) => self.failed(error.into()),
            Ok(Err(_panic)) => OnceError::Panicked,
            Err(_elapsed) => OnceError::TimedOut { limit },
        };
        self.database.roll_back(transaction).await;
        Err(failed)
    }

    fn failed(&self, error: WorkError) -> OnceError {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&*error);
        while let Some(error) = cause {
            if error.is::<TryAgain>() || self.database.is_conflict(error) {
                return OnceError::Conflict(words(error.to_string()));
            }
            cause = error.source();
        }
        OnceError::Failed(error)
    }

    /// Does with the transaction what the answer means.
    async fn end(
        &self,
        mut transaction: D::Transaction,
        attempt: Attempt,
        expires_at: Timestamp,
        outcome: Outcome,
    ) -> Result<Answered, OnceError> {
        let ended = Ended::Answered(outcome.clone());
        let Settle { to, keep, .. } = settle(&attempt, ended, &self.options.policy);
        let end = match to {
            to @ Settlement::Completed(_) => End { to, keep },
            to @ Settlement::Failed(_) => {
                self.database.undo(&mut transaction).await?;
                End { to, keep }
            }
            Settlement::Released | Settlement::Declined | Settlement::InDoubt(_) => {
                self.database.roll_back(transaction).await;
                return Ok(Answered { outcome, fate: Fate::RolledBack });
            }
        };
        match self.database.finish(transaction, &end).await {
            Ok(()) => Ok(Answered { outcome, fate: Fate::Stored { expires_at } }),
            Err(TransactionError::Store(lost @ StoreError::Unconfirmed(_))) => {
                tracing::warn!(operation = %attempt.id, "a commit was not confirmed; reading it again");
                self.find_out(attempt, outcome, lost).await
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The row is the truth about a commit that nobody confirmed.
    async fn find_out(
        &self,
        attempt: Attempt,
        outcome: Outcome,
        mut lost: StoreError,
    ) -> Result<Answered, OnceError> {
        let mut pause = QUESTION_PAUSE;
        for _ in 0..QUESTIONS_MAX {
            match self.database.find_out(&attempt).await {
                Ok(Some(record))
                    if record.owner == attempt.owner && record.fence == attempt.fence =>
                {
                    let fate = Fate::Stored { expires_at: record.expires_at };
                    return Ok(Answered { outcome, fate });
                }
                Ok(_) => return Err(OnceError::Conflict(words("the commit did not arrive"))),
                Err(TransactionError::Conflict(cause)) => lost = StoreError::Unconfirmed(cause),
                Err(TransactionError::Store(error)) => lost = error,
            }
            sleep(pause).await;
            pause *= 2;
        }
        Err(OnceError::Unknown(lost))
    }
}

fn told(answer: Answer) -> Result<Answered, OnceError> {
    match answer {
        Answer::Replay(record) => match record.outcome() {
            Some(outcome) => {
                let fate = Fate::Replayed { expires_at: record.expires_at };
                Ok(Answered { outcome: outcome.clone(), fate })
            }
            None => Err(OnceError::Store(StoreError::damaged("a replay without an outcome"))),
        },
        answer @ (Answer::Busy { .. }
        | Answer::InDoubt { .. }
        | Answer::Mismatch(_)
        | Answer::Gone { .. }) => Err(OnceError::Refused(answer)),
    }
}

/// A cause that is only words.
fn words(text: impl Into<Box<dyn Error + Send + Sync>>) -> Cause {
    Cause::from(text.into())
}
