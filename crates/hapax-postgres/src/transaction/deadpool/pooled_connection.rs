//! One connection of the pool, and what is said on it.

use std::{sync::Arc, time::Duration};

use deadpool_postgres::Object;
use hapax_core::{
    OperationId, Salt, StoreError, Timestamp, TransactionError,
    store::{Claim, Over},
    time::micros,
    transaction::{End, Entrance},
};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;

use super::Transaction;
use crate::transaction::{
    CLAIM, END, FOLLOW, LOCK, MAKE_ROOM, READ, SALT, SAVEPOINT, STORE,
    error::TransactionFault,
    events::{EventColumns, SEGMENT},
    session::{ClaimValues, Fresh, Session, TransactionRow, read_row},
    unit::{self, Placing, TransactionPurpose, checked_salt},
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
    ) -> Result<Option<Fresh>, TransactionFault> {
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
        claimed.map(|row| fresh(&row)).transpose()
    }

    /// Writes the events and the outcome, and commits, in one round trip.
    pub(super) async fn end(
        &mut self,
        transaction: &mut Transaction,
        end: &End,
    ) -> Result<Timestamp, EndFailure> {
        let before = |error: tokio_postgres::Error| EndFailure::BeforeCommit(error.into());
        let misused =
            |words: &'static str| EndFailure::BeforeCommit(TransactionFault::unanswered(words));
        let TransactionPurpose::Operation { held, retention } = &transaction.purpose else {
            return Err(misused("the transaction is a message's"));
        };
        let Some((ending, placing)) = unit::ending(held, *retention, end) else {
            return Err(misused("only an answer can be stored"));
        };
        transaction.events.publish(self).await.map_err(EndFailure::BeforeCommit)?;
        let (head, body, digest) =
            (&ending.sealed.head[..], &ending.sealed.body[..], &ending.sealed.digest[..]);
        let attempt = held.attempt;
        let id = &attempt.id.as_bytes()[..];
        let (fence, owner) = (attempt.fence.get(), attempt.owner.0);
        let written = match placing {
            Placing::Beside(Fresh { bucket, response, .. }) => {
                let statement = self.0.prepare_cached(STORE).await.map_err(before)?;
                let params: [&(dyn ToSql + Sync); 5] = [&bucket, &response, &head, &body, &digest];
                tokio::join!(self.0.execute(&statement, &params), self.0.batch_execute("COMMIT"))
            }
            Placing::WithTheRow => {
                let statement = self.0.prepare_cached(END).await.map_err(before)?;
                let (state, keep) = (ending.state, ending.keep);
                let params: [&(dyn ToSql + Sync); 8] =
                    [&id, &fence, &owner, &state, &keep, &head, &body, &digest];
                let written = self.0.execute(&statement, &params).await;
                match written {
                    Ok(1) => (written, self.0.batch_execute("COMMIT").await),
                    Ok(_) => {
                        let fault = TransactionFault::unanswered("the claim is no longer there");
                        return Err(EndFailure::BeforeCommit(fault));
                    }
                    Err(error) => return Err(before(error)),
                }
            }
        };
        match written {
            (Ok(_), Ok(())) => Ok(held.expires_at),
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

    /// The salt, if this code can work with the schema.
    pub(crate) async fn salt(&mut self) -> Result<Salt, TransactionError> {
        let unusable = |error| StoreError::unavailable(crate::OpenError::Unusable(error));
        let row = self.0.query_one(SALT, &[]).await.map_err(unusable)?;
        let (version, works_with) = (row.try_get(0), row.try_get(1));
        let (version, works_with) = (version.map_err(unusable)?, works_with.map_err(unusable)?);
        checked_salt(version, works_with, row.try_get(2).map_err(unusable)?)
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

    async fn claim(&mut self, entrance: &Entrance) -> Result<Option<Fresh>, TransactionFault> {
        let statement = self.0.prepare_cached(CLAIM).await?;
        let params = ClaimValues::of(entrance);
        let Some(row) = self.0.query_opt(&statement, &params.params()).await? else {
            return Ok(None);
        };
        self.0.batch_execute(SAVEPOINT).await?;
        fresh(&row).map(Some)
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

    async fn emit(
        &mut self,
        text: &'static str,
        segment: i64,
        events: &EventColumns,
    ) -> Result<u64, TransactionFault> {
        let statement = self.0.prepare_cached(text).await?;
        let params: [&(dyn ToSql + Sync); 8] = [
            &segment,
            &events.locks,
            &events.lanes,
            &events.topics,
            &events.keys,
            &events.content_types,
            &events.headers,
            &events.payloads,
        ];
        Ok(self.0.execute(&statement, &params).await?)
    }

    async fn segment(&mut self) -> Result<i64, TransactionFault> {
        let statement = self.0.prepare_cached(SEGMENT).await?;
        Ok(self.0.query_one(&statement, &[]).await?.try_get(0)?)
    }

    async fn make_room(
        &mut self,
        expires_at: Timestamp,
        keep: i64,
    ) -> Result<(), TransactionFault> {
        self.0.query(MAKE_ROOM, &[&expires_at.as_micros(), &keep]).await?;
        Ok(())
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

fn fresh(row: &tokio_postgres::Row) -> Result<Fresh, TransactionFault> {
    Ok(Fresh {
        expires_at: Timestamp::from_micros(row.try_get(0)?),
        bucket: row.try_get(1)?,
        response: row.try_get(2)?,
    })
}

impl From<tokio_postgres::Error> for TransactionFault {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code().map(|code| code.code().to_owned()) {
            Some(code) => Self::Refused { code, cause: Arc::new(error) },
            None => Self::unanswered(error),
        }
    }
}
