use std::time::Duration;

use hapax_core::{
    OperationId, Stamp, StoreError, Timestamp, codec,
    store::{Claim, Over},
    time::micros,
    transaction::End,
};

use super::{
    OperationStatements,
    record::{KeySeen, OperationRecord},
    row::stored_row,
};
use crate::{ResultRow, Session, Statement, TransactionFault, Value};

/// A record that has a lock of its own, and is found and written by one statement each.
#[derive(Debug)]
pub struct LockedRecord {
    statements: &'static OperationStatements,
    id: OperationId,
    lock: i64,
    /// Goes out with the statement that takes the lock.
    begin: Option<&'static str>,
}

impl LockedRecord {
    /// The record of this operation, whose lock has this number. `begin` begins the transaction, where it has
    /// not begun yet, together with the first statement in it.
    pub fn new(
        statements: &'static OperationStatements,
        id: OperationId,
        lock: i64,
        begin: Option<&'static str>,
    ) -> Self {
        Self { statements, id, lock, begin }
    }

    /// Tries the lock alone; whether this transaction has it now.
    pub(super) async fn lock(
        &mut self,
        session: &mut impl Session,
    ) -> Result<bool, TransactionFault> {
        let rows = self.ask_first(session, self.statements.lock, &[self.lock.into()]).await?;
        only(&rows)?.flag(0)
    }

    /// Asks with the statement that begins, if that is left to do.
    async fn ask_first<S: Session>(
        &mut self,
        session: &mut S,
        text: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<S::Row>, TransactionFault> {
        let begin = self.begin.take().map(Statement::plain);
        let asked: Vec<_> = begin.into_iter().chain([Statement { text, values }]).collect();
        Ok(session.ask_all(&asked).await?.pop().unwrap_or_default())
    }

    /// The answer to a look.
    fn seen(&self, rows: &[impl ResultRow]) -> Result<KeySeen, TransactionFault> {
        let row = only(rows)?;
        let has_lock = row.flag(0)?;
        let Some(now) = row.maybe_number(1)? else { return Ok(KeySeen { has_lock, found: None }) };
        let now = Timestamp::from_micros(now);
        let stored = stored_row(row, self.id, self.statements.unpack)?;
        let record = stored.open(now).map_err(StoreError::from)?;
        Ok(KeySeen { has_lock, found: Some((now, record)) })
    }

    /// Why a first record was not written.
    fn taken(&self, fault: TransactionFault) -> TransactionFault {
        if fault.code().is_some_and(|code| self.statements.taken.contains(&code))
            && let TransactionFault::Refused { cause, .. } = fault
        {
            return TransactionFault::Taken(cause);
        }
        fault
    }
}

impl OperationRecord for LockedRecord {
    /// Most operations are new: a glance tells, and costs half as much as reading a record that is not there.
    async fn look(&mut self, session: &mut impl Session) -> Result<KeySeen, TransactionFault> {
        let id = self.id;
        let values = [self.lock.into(), id.as_bytes().into()];
        let rows = self.ask_first(session, self.statements.glance, &values).await?;
        let row = only(&rows)?;
        if !row.flag(1)? {
            return Ok(KeySeen { has_lock: row.flag(0)?, found: None });
        }
        let rows = session.ask(self.statements.look, &values).await?;
        self.seen(&rows)
    }

    async fn peek(&mut self, session: &mut impl Session) -> Result<KeySeen, TransactionFault> {
        let rows = session.ask(self.statements.peek, &[self.id.as_bytes().into()]).await?;
        self.seen(&rows)
    }

    async fn wait(
        &mut self,
        session: &mut impl Session,
        wait: Duration,
    ) -> Result<bool, TransactionFault> {
        let values = [self.lock.into(), micros(wait).into()];
        let rows = session.ask(self.statements.wait, &values).await?;
        let row = only(&rows)?;
        match (row.flag(0)?, row.flag(1)?) {
            (false, _) => Ok(false),
            (true, true) => Ok(true),
            (true, false) => {
                Err(TransactionFault::conflict("another transaction ended after this one began"))
            }
        }
    }

    async fn write(
        &self,
        session: &mut impl Session,
        claim: &Claim,
        end: &End,
        commit: Option<&'static str>,
    ) -> Result<Timestamp, TransactionFault> {
        let outcome = end.to.outcome().map(|outcome| codec::seal(self.id, outcome));
        let answer = outcome.as_ref().map(self.statements.pack);
        let answer = answer.as_deref();
        let follows = match &claim.over {
            Over::Nothing => None,
            Over::Spent(seen) => Some((seen, true)),
            Over::Abandoned(seen) => Some((seen, false)),
        };
        let rows = match follows {
            None => {
                let values = self.first_record(claim, end, answer);
                let record = Statement { text: self.statements.record, values: &values };
                let commit = commit.map(Statement::plain);
                let asked: Vec<_> = [record].into_iter().chain(commit).collect();
                let answers = session.ask_all(&asked).await;
                answers.map_err(|fault| self.taken(fault))?.into_iter().next().unwrap_or_default()
            }
            // The rows decide whether the commit is wanted.
            Some(seen) => {
                let values = self.following_record(claim, seen, end, answer);
                let rows = session.ask(self.statements.follow, &values).await?;
                if rows.is_empty() {
                    return Err(TransactionFault::taken("the record changed since it was read"));
                }
                if let Some(commit) = commit {
                    session.ask(commit, &[]).await?;
                }
                rows
            }
        };
        Ok(Timestamp::from_micros(only(&rows)?.number(0)?))
    }
}

impl LockedRecord {
    fn first_record<'a>(
        &'a self,
        claim: &'a Claim,
        end: &End,
        answer: Option<&'a [u8]>,
    ) -> [Value<'a>; 13] {
        [
            self.lock.into(),
            self.id.as_bytes().into(),
            claim.operation.tenant().as_str().into(),
            claim.operation.scope().as_str().into(),
            claim.operation.key().as_str().into(),
            claim.fingerprint.as_bytes().into(),
            claim.owner.0.into(),
            (claim.recovery as i16).into(),
            micros(claim.retention).into(),
            micros(claim.tombstone).into(),
            (end.to.tag() as i16).into(),
            micros(end.keep).into(),
            answer.into(),
        ]
    }

    fn following_record<'a>(
        &'a self,
        claim: &'a Claim,
        (seen, is_spent): (&Stamp, bool),
        end: &End,
        answer: Option<&'a [u8]>,
    ) -> [Value<'a>; 15] {
        [
            self.id.as_bytes().into(),
            seen.fence.get().into(),
            seen.owner.0.into(),
            (seen.tag as i16).into(),
            seen.until.as_micros().into(),
            is_spent.into(),
            claim.fingerprint.as_bytes().into(),
            claim.fence.get().into(),
            claim.owner.0.into(),
            (claim.recovery as i16).into(),
            micros(claim.retention).into(),
            micros(claim.tombstone).into(),
            (end.to.tag() as i16).into(),
            micros(end.keep).into(),
            answer.into(),
        ]
    }
}

fn only<R: ResultRow>(rows: &[R]) -> Result<&R, TransactionFault> {
    rows.first().ok_or_else(|| TransactionFault::unanswered("a statement came back without a row"))
}
