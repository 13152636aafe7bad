//! One connection of the pool, and what is said on it.

use std::{sync::Arc, time::Duration};

use deadpool_postgres::Object;
use hapax_core::{
    OperationId, Timestamp,
    store::{Claim, Over},
    time::micros,
    transaction::{End, Entrance},
};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;

use super::Transaction;
use crate::{
    answer::Answer,
    transaction::{
        CLAIM, EMIT, END, FOLLOW, LOCK, READ, SAVEPOINT,
        error::TransactionFault,
        events::EmittedEvents,
        session::{ClaimValues, Session, TransactionRow, read_row},
        unit::{self, TransactionPurpose},
    },
};

/// How long a rollback may take before its connection is closed instead.
const ROLL_BACK_MAX: Duration = Duration::from_secs(5);

/// Where an end failed.
pub(super) enum EndFailure {
    BeforeCommit(TransactionFault),
    InCommit(TransactionFault),
}

/// One connection out of the pool.
pub(crate) struct PooledConnection(pub(crate) Object);

impl PooledConnection {
    /// Begins, claims and sets the savepoint, in one round trip.
    pub(super) async fn open(
        &mut self,
        begin: &'static str,
        entrance: &Entrance,
    ) -> Result<Option<Timestamp>, TransactionFault> {
        let statement = self.0.prepare_cached(CLAIM).await?;
        let params = ClaimValues::of(entrance);
        let params = params.params();
        let (begun, claimed, saved) = tokio::join!(
            self.0.batch_execute(begin),
            self.0.query_opt(&statement, &params),
            self.0.batch_execute(SAVEPOINT),
        );
        begun?;
        let claimed = claimed?;
        saved?;
        claimed.map(|row| expires_at(&row)).transpose()
    }

    /// Writes the events and the outcome, and commits, in one round trip.
    pub(super) async fn end(
        &mut self,
        transaction: &mut Transaction,
        end: &End,
    ) -> Result<(), EndFailure> {
        let before = |error: tokio_postgres::Error| EndFailure::BeforeCommit(error.into());
        let misused =
            |words: &'static str| EndFailure::BeforeCommit(TransactionFault::unanswered(words));
        let TransactionPurpose::Operation(held) = &transaction.purpose else {
            return Err(misused("the transaction is a message's"));
        };
        let Some(ending) = unit::ending(held, end) else {
            return Err(misused("only an answer can be stored"));
        };
        self.publish(&mut transaction.events).await.map_err(EndFailure::BeforeCommit)?;
        let attempt = held.attempt;
        let id = &attempt.id.as_bytes()[..];
        let (fence, owner) = (attempt.fence.get(), attempt.owner.0);
        let statement = self.0.prepare_cached(END).await.map_err(before)?;
        let (state, keep, answer) = (ending.state, ending.keep, Answer(&ending.sealed));
        let params: [&(dyn ToSql + Sync); 6] = [&id, &fence, &owner, &state, &keep, &answer];
        // One that finds no row of ours is refused, and the commit behind it rolls back.
        let written =
            tokio::join!(self.0.execute(&statement, &params), self.0.batch_execute("COMMIT"));
        match written {
            (Ok(_), Ok(())) => Ok(()),
            // A refused write rolls back what the commit after it finds; a lost one may be committed.
            (Err(error), committed) => Err(match TransactionFault::from(error) {
                fault @ TransactionFault::Refused { .. } => EndFailure::BeforeCommit(fault),
                fault @ TransactionFault::Unanswered(_) => match committed {
                    Ok(()) => EndFailure::BeforeCommit(fault),
                    Err(_) => EndFailure::InCommit(fault),
                },
            }),
            (Ok(_), Err(error)) => Err(EndFailure::InCommit(error.into())),
        }
    }

    /// Writes the events that waited for the commit.
    pub(crate) async fn publish(
        &mut self,
        events: &mut EmittedEvents,
    ) -> Result<(), TransactionFault> {
        let Some(events) = events.columns() else { return Ok(()) };
        let statement = self.0.prepare_cached(EMIT).await?;
        let params: [&(dyn ToSql + Sync); 5] = [
            &events.topics,
            &events.keys,
            &events.payloads,
            &events.headers,
            &events.content_types,
        ];
        self.0.query(&statement, &params).await?;
        Ok(())
    }

    /// Ends the transaction without a trace; a connection that cannot is closed.
    pub(crate) async fn roll_back(self) {
        let rolled_back = timeout(ROLL_BACK_MAX, self.0.batch_execute("ROLLBACK")).await;
        if !matches!(rolled_back, Ok(Ok(()))) {
            self.close();
        }
    }

    /// Takes the connection out of the pool; the server rolls back what it had open.
    pub(crate) fn close(self) {
        drop(Object::take(self.0));
    }
}

impl Session for PooledConnection {
    async fn run(&mut self, text: &'static str) -> Result<(), TransactionFault> {
        Ok(self.0.batch_execute(text).await?)
    }

    async fn claim(&mut self, entrance: &Entrance) -> Result<Option<Timestamp>, TransactionFault> {
        let statement = self.0.prepare_cached(CLAIM).await?;
        let params = ClaimValues::of(entrance);
        let Some(row) = self.0.query_opt(&statement, &params.params()).await? else {
            return Ok(None);
        };
        self.0.batch_execute(SAVEPOINT).await?;
        expires_at(&row).map(Some)
    }

    async fn lock(&mut self, id: OperationId, wait: i64) -> Result<bool, TransactionFault> {
        let statement = self.0.prepare_cached(LOCK).await?;
        Ok(self.0.query_one(&statement, &[&id.to_string(), &wait]).await?.try_get(0)?)
    }

    async fn read(&mut self, id: OperationId) -> Result<Option<TransactionRow>, TransactionFault> {
        let statement = self.0.prepare_cached(READ).await?;
        let row = self.0.query_opt(&statement, &[&&id.as_bytes()[..]]).await?;
        let read = |row: tokio_postgres::Row| Ok::<_, tokio_postgres::Error>(read_row!(row, id));
        Ok(row.map(read).transpose()?)
    }

    async fn follow(&mut self, claim: &Claim) -> Result<Option<Timestamp>, TransactionFault> {
        let (Over::Spent(seen) | Over::Abandoned(seen)) = claim.over else { return Ok(None) };
        let spent = matches!(claim.over, Over::Spent(_));
        let statement = self.0.prepare_cached(FOLLOW).await?;
        let id = claim.operation.id();
        let params: [&(dyn ToSql + Sync); 12] = [
            &&id.as_bytes()[..],
            &seen.fence.get(),
            &seen.owner.0,
            &(seen.tag as i16),
            &seen.until.as_micros(),
            &claim.fence.get(),
            &claim.owner.0,
            &spent,
            &micros(claim.retention),
            &micros(claim.tombstone),
            &(claim.recovery as i16),
            &&claim.fingerprint.as_bytes()[..],
        ];
        let row = self.0.query_opt(&statement, &params).await?;
        let expires_at = row.map(|row| row.try_get(0)).transpose()?;
        Ok(expires_at.map(Timestamp::from_micros))
    }
}

impl ClaimValues<'_> {
    fn params(&self) -> [&(dyn ToSql + Sync); 9] {
        [
            &self.id,
            &self.tenant,
            &self.scope,
            &self.key,
            &self.fingerprint,
            &self.owner,
            &self.recovery,
            &self.retention,
            &self.tombstone,
        ]
    }
}

fn expires_at(row: &tokio_postgres::Row) -> Result<Timestamp, TransactionFault> {
    Ok(Timestamp::from_micros(row.try_get(0)?))
}

impl From<tokio_postgres::Error> for TransactionFault {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code().map(|code| code.code().to_owned()) {
            Some(code) => Self::Refused { code, cause: Arc::new(error) },
            None => Self::unanswered(error),
        }
    }
}
