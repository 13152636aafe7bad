use std::time::Duration;

use hapax_core::{
    OperationId, Record, StoreError, Timestamp, apply,
    clock::ClockReading,
    codec::Row,
    store::{By, Claim, Settle},
    transaction::End,
};
use hapax_sql::{
    Session, TransactionFault,
    operation::{KeySeen, OperationRecord},
};

use crate::{clock_mark, log, options::Clock, row::NumberedRow};

/// Changes the file, if only a little. A commit whose sync failed may lie in the log, where a
/// recovery after a crash would find it; whatever is committed next is written over it. After
/// this, what is read is what happened.
const MAKE_CERTAIN: &str = "INSERT INTO hapax_meta (name, value) VALUES ('unconfirmed', 1) \
     ON CONFLICT (name) DO UPDATE SET value = value + 1";

/// The record of an operation in the log. The write lock of the file, which the transaction takes when it begins,
/// is the operation's lock, too.
#[derive(Debug)]
pub struct LogRecord {
    id: OperationId,
    clock: Clock,
    /// When it was looked for: a new record's life begins then.
    looked_at: Timestamp,
    /// What was found then, and the number of its row.
    found: Option<(i64, Record)>,
}

impl LogRecord {
    pub(crate) fn new(id: OperationId, clock: &Clock) -> Self {
        Self { id, clock: clock.clone(), looked_at: Timestamp::ZERO, found: None }
    }
}

impl OperationRecord for LogRecord {
    /// What is found is judged as far as the clock is trusted; what is written is written as of now.
    async fn look(&mut self, session: &mut impl Session) -> Result<KeySeen, TransactionFault> {
        let found = log::find(&mut &mut *session, self.id).await?.transpose()?;
        self.looked_at = self.clock.now();
        self.found = None;
        let Some(NumberedRow { number, row }) = found else {
            return Ok(KeySeen { has_lock: true, found: None });
        };
        let now = self.looked_at;
        let mark =
            if is_due(now, &row) { clock_mark::read(&mut &mut *session).await? } else { None };
        let record = row.open(now).map_err(StoreError::from)?;
        self.found = Some((number, record.clone()));
        Ok(KeySeen { has_lock: true, found: Some((ClockReading { now, mark }.trusted(), record)) })
    }

    async fn peek(&mut self, session: &mut impl Session) -> Result<KeySeen, TransactionFault> {
        self.look(session).await
    }

    /// Whoever had the lock has ended: this transaction has it.
    async fn wait(
        &mut self,
        session: &mut impl Session,
        _: Duration,
    ) -> Result<bool, TransactionFault> {
        session.ask(MAKE_CERTAIN, &[]).await.map(|_| true)
    }

    async fn write(
        &self,
        session: &mut impl Session,
        claim: &Claim,
        end: &End,
        commit: Option<&'static str>,
    ) -> Result<Timestamp, TransactionFault> {
        let (number, found) = self.found.as_ref().map(|(number, record)| (*number, record)).unzip();
        let by = By::Owner { fence: claim.fence, owner: claim.owner };
        let settle = Settle { id: self.id, by, to: end.to.clone(), keep: end.keep };
        let claimed = apply::claim(self.looked_at, found, claim);
        let ended = apply::settle(self.clock.now(), claimed.as_ref(), &settle);
        let ended = ended.ok_or_else(|| TransactionFault::unanswered(NotItsOwn))?;
        if !log::replace(&mut &mut *session, number, &Row::seal(&ended)).await? {
            return Err(TransactionFault::unanswered(Meddled));
        }
        if let Some(commit) = commit {
            session.ask(commit, &[]).await?;
        }
        Ok(ended.expires_at)
    }
}

/// Whether it matters how far the clock is trusted: what was found seems to be past its time.
fn is_due(now: Timestamp, row: &Row) -> bool {
    let now = now.as_micros();
    row.expires_at <= now || (row.until != 0 && row.until <= now)
}

/// The machine does not let the owner of a claim end it.
#[derive(Debug, thiserror::Error)]
#[error("a claim cannot be ended by its own owner")]
struct NotItsOwn;

/// The row of a claim appeared or vanished although the write lock was held.
#[derive(Debug, thiserror::Error)]
#[error("the row of a claim changed inside its own transaction: leave the tables of Hapax alone")]
struct Meddled;
