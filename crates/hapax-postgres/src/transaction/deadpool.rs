//! Same-transaction mode on a deadpool of tokio-postgres connections.

use std::{
    error::Error,
    fmt,
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use deadpool_postgres::{Object, Pool};
use hapax_core::{
    Attempt, Event, OperationId, Record, Salt, StoreError, Timestamp, TransactionError,
    store::{Claim, Over},
    time::micros,
    transaction::{self, End, Entered, Entrance, Granted},
};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;

use super::{
    CLAIM, EMIT, END, FOLLOW, Isolation, LOCK, MAKE_ROOM, READ, SALT, SAVEPOINT, STORE, UNDO,
    begin_statement,
    error::{CONFLICTS, Fault},
    events::Events,
    session::{ClaimValues, Fresh, Read, Session, read_row},
    unit::{self, Held, Placing, checked_salt, enter_session},
};

/// How long a rollback may take before its connection is closed instead.
const ROLL_BACK_MAX: Duration = Duration::from_secs(5);
/// How long to wait for a transaction whose commit was not confirmed to end.
const END_WAIT: Duration = Duration::from_secs(2);

/// The caller's pool, as a database that keeps a record in the caller's transaction.
#[derive(Clone)]
pub struct Database {
    pool: Pool,
    isolation: Option<Isolation>,
}

impl Database {
    /// Uses this pool. The schema must have been made: `hapax migrate`, or
    /// [`Store::migrate`](crate::Store::migrate).
    pub fn new(pool: Pool) -> Self {
        Self { pool, isolation: None }
    }

    /// The same with transactions of this isolation level.
    #[must_use]
    pub fn isolation(self, isolation: Isolation) -> Self {
        Self { isolation: Some(isolation), ..self }
    }

    async fn connection(&self) -> Result<Object, TransactionError> {
        Ok(self.pool.get().await.map_err(StoreError::unavailable)?)
    }

    /// Makes room for an outcome, outside of the transaction that missed it.
    async fn make_room(&self, held: &Held, end: &End) -> TransactionError {
        let (expires_at, keep) = (held.expires_at, micros(end.keep));
        let made = async {
            let connection = self.connection().await?;
            Line(connection).make_room(expires_at, keep).await.map_err(Fault::before_commit)
        };
        match made.await {
            Ok(()) => {
                TransactionError::conflict("there was no table for the outcome; now there is")
            }
            Err(error) => error,
        }
    }
}

/// A transaction on a connection of the pool: the connection itself, to be written through.
///
/// Dropped without an end, it closes its connection, and the server rolls it back.
pub struct Transaction {
    line: Option<Line>,
    held: Held,
    retention: Duration,
    events: Events,
}

impl Transaction {
    /// Publishes this event if, and only if, the transaction commits.
    pub fn emit(&mut self, event: Event) {
        self.events.push(event);
    }

    fn line(&mut self) -> &mut Line {
        #[expect(clippy::expect_used, reason = "only ending consumes the transaction")]
        self.line.as_mut().expect("a transaction has its connection until it ends")
    }
}

impl Deref for Transaction {
    type Target = deadpool_postgres::ClientWrapper;

    fn deref(&self) -> &Self::Target {
        #[expect(clippy::expect_used, reason = "only ending consumes the transaction")]
        &self.line.as_ref().expect("a transaction has its connection until it ends").0
    }
}

impl DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.line().0
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        if let Some(line) = self.line.take() {
            line.close();
        }
    }
}

impl fmt::Debug for Transaction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transaction").field("held", &self.held).finish_non_exhaustive()
    }
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Database").field("isolation", &self.isolation).finish_non_exhaustive()
    }
}

impl transaction::Database for Database {
    type Transaction = Transaction;

    async fn salt(&self) -> Result<Salt, TransactionError> {
        let connection = self.connection().await?;
        let row = connection
            .query_one(SALT, &[])
            .await
            .map_err(|error| StoreError::unavailable(crate::OpenError::Unusable(error)))?;
        checked_salt(row.get(0), row.get(1), row.get(2))
    }

    async fn begin(&self, entrance: &Entrance) -> Result<Entered<Transaction>, TransactionError> {
        let mut line = Line(self.connection().await?);
        let entered = async {
            let first = line.open(begin_statement(self.isolation), entrance).await;
            let first = first.map_err(Fault::before_commit)?;
            enter_session(&mut line, entrance, first).await
        };
        match entered.await {
            Ok(Ok(held)) => {
                let (attempt, expires_at) = (held.attempt, held.expires_at);
                let retention = entrance.policy.retention().window;
                let events = Events::default();
                let transaction = Transaction { line: Some(line), held, retention, events };
                Ok(Entered::Execute(Granted { transaction, attempt, expires_at }))
            }
            Ok(Err(answer)) => {
                line.roll_back().await;
                Ok(Entered::Answer(answer))
            }
            Err(error) => {
                line.roll_back().await;
                Err(error)
            }
        }
    }

    async fn undo(&self, transaction: &mut Transaction) -> Result<(), TransactionError> {
        transaction.events.forget();
        transaction.line().run(UNDO).await.map_err(Fault::before_commit)
    }

    async fn finish(
        &self,
        mut transaction: Transaction,
        end: &End,
    ) -> Result<(), TransactionError> {
        let Some(mut line) = transaction.line.take() else { return Ok(()) };
        match line.end(&mut transaction, end).await {
            Ok(()) => Ok(()),
            Err(Ended::BeforeCommit(fault)) => {
                line.roll_back().await;
                Err(if fault.is_missing_bucket() {
                    self.make_room(&transaction.held, end).await
                } else {
                    fault.before_commit()
                })
            }
            Err(Ended::InCommit(fault)) => {
                line.close();
                Err(fault.of_commit())
            }
        }
    }

    async fn roll_back(&self, mut transaction: Transaction) {
        if let Some(line) = transaction.line.take() {
            line.roll_back().await;
        }
    }

    async fn find_out(&self, attempt: &Attempt) -> Result<Option<Record>, TransactionError> {
        let mut line = Line(self.connection().await?);
        line.run("BEGIN ISOLATION LEVEL READ COMMITTED").await.map_err(Fault::before_commit)?;
        let found = unit::read_ended(&mut line, attempt, END_WAIT).await;
        line.roll_back().await;
        found
    }

    fn is_conflict(&self, error: &(dyn Error + 'static)) -> bool {
        let error = error.downcast_ref::<tokio_postgres::Error>();
        let code = error.and_then(tokio_postgres::Error::code);
        code.is_some_and(|code| CONFLICTS[..2].contains(&code.code()))
    }
}

/// Where an end failed.
enum Ended {
    BeforeCommit(Fault),
    InCommit(Fault),
}

/// One connection out of the pool.
struct Line(Object);

impl Line {
    /// Begins, claims and sets the savepoint, in one round trip.
    async fn open(
        &mut self,
        begin: &'static str,
        entrance: &Entrance,
    ) -> Result<Option<Fresh>, Fault> {
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
    async fn end(&mut self, transaction: &mut Transaction, end: &End) -> Result<(), Ended> {
        let before = |error: tokio_postgres::Error| Ended::BeforeCommit(error.into());
        let held = &transaction.held;
        let Some((ending, placing)) = unit::ending(held, transaction.retention, end) else {
            let fault = Fault::unanswered("only an answer can be stored");
            return Err(Ended::BeforeCommit(fault));
        };
        if let Some(events) = transaction.events.columns() {
            let statement = self.0.prepare_cached(EMIT).await.map_err(before)?;
            let params: [&(dyn ToSql + Sync); 5] = [
                &events.topics,
                &events.keys,
                &events.payloads,
                &events.headers,
                &events.content_types,
            ];
            self.0.query(&statement, &params).await.map_err(before)?;
        }
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
                        let fault = Fault::unanswered("the claim is no longer there");
                        return Err(Ended::BeforeCommit(fault));
                    }
                    Err(error) => return Err(before(error)),
                }
            }
        };
        match written {
            (Ok(_), Ok(())) => Ok(()),
            // A refused write rolls back what the commit after it finds; a lost one may be committed.
            (Err(error), committed) => Err(match Fault::from(error) {
                fault @ Fault::Refused { .. } => Ended::BeforeCommit(fault),
                fault @ Fault::Unanswered(_) => match committed {
                    Ok(()) => Ended::BeforeCommit(fault),
                    Err(_) => Ended::InCommit(fault),
                },
            }),
            (Ok(_), Err(error)) => Err(Ended::InCommit(error.into())),
        }
    }

    /// Ends the transaction without a trace; a connection that cannot is closed.
    async fn roll_back(self) {
        let rolled_back = timeout(ROLL_BACK_MAX, self.0.batch_execute("ROLLBACK")).await;
        if !matches!(rolled_back, Ok(Ok(()))) {
            self.close();
        }
    }

    /// Takes the connection out of the pool; the server rolls back what it had open.
    fn close(self) {
        drop(Object::take(self.0));
    }
}

impl Session for Line {
    async fn run(&mut self, text: &'static str) -> Result<(), Fault> {
        Ok(self.0.batch_execute(text).await?)
    }

    async fn claim(&mut self, entrance: &Entrance) -> Result<Option<Fresh>, Fault> {
        let statement = self.0.prepare_cached(CLAIM).await?;
        let params = ClaimValues::of(entrance);
        let Some(row) = self.0.query_opt(&statement, &params.params()).await? else {
            return Ok(None);
        };
        self.0.batch_execute(SAVEPOINT).await?;
        fresh(&row).map(Some)
    }

    async fn lock(&mut self, lock: i64, wait: i64) -> Result<bool, Fault> {
        let statement = self.0.prepare_cached(LOCK).await?;
        Ok(self.0.query_one(&statement, &[&lock, &wait]).await?.try_get(0)?)
    }

    async fn read(&mut self, id: OperationId) -> Result<Option<Read>, Fault> {
        let statement = self.0.prepare_cached(READ).await?;
        let row = self.0.query_opt(&statement, &[&&id.as_bytes()[..]]).await?;
        let read = |row: tokio_postgres::Row| Ok::<_, tokio_postgres::Error>(read_row!(row, id));
        Ok(row.map(read).transpose()?)
    }

    async fn follow(&mut self, claim: &Claim) -> Result<Option<Timestamp>, Fault> {
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

    async fn make_room(&mut self, expires_at: Timestamp, keep: i64) -> Result<(), Fault> {
        self.0.query(MAKE_ROOM, &[&expires_at.as_micros(), &keep]).await?;
        Ok(())
    }
}

impl ClaimValues<'_> {
    fn params(&self) -> [&(dyn ToSql + Sync); 10] {
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
            &self.lock,
        ]
    }
}

fn fresh(row: &tokio_postgres::Row) -> Result<Fresh, Fault> {
    Ok(Fresh {
        expires_at: Timestamp::from_micros(row.try_get(0)?),
        bucket: row.try_get(1)?,
        response: row.try_get(2)?,
    })
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        match error.code().map(|code| code.code().to_owned()) {
            Some(code) => Self::Refused { code, cause: Arc::new(error) },
            None => Self::unanswered(error),
        }
    }
}
