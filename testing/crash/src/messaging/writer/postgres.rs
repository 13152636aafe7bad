use std::{ops::Range, sync::Arc, time::Duration};

use tokio::{sync::watch, time::sleep};
use tokio_postgres::{Client, Transaction};

use super::{
    super::world::connect, BUSINESS, COUNT, CommittedEvent, Draft, KEEP, READ, SharedLedger,
};
use crate::error::CrashError;

const EMIT: &str = "SELECT hapax.emit($1, $2, convert_to($3, 'UTF8'))::text";
const OPEN_MS: Range<u64> = 100..800;
const PACE_MS: Range<u64> = 20..60;
const PAUSE: Duration = Duration::from_millis(50);

/// A business in a PostgreSQL database.
#[derive(Debug, Clone)]
pub(in super::super) struct Postgres {
    pub(super) url: String,
    pub(super) lines: usize,
    pub(super) told: Arc<SharedLedger>,
}

impl Postgres {
    pub(super) async fn prepare(&self) -> Result<(), CrashError> {
        Ok(connect(&self.url).await?.batch_execute(BUSINESS).await?)
    }

    /// Writes until told to stop, whatever becomes of the server.
    pub(super) async fn write(self, mut dice: fastrand::Rng, stop: watch::Receiver<bool>) {
        while !*stop.borrow() {
            if let Ok(mut client) = connect(&self.url).await {
                // A transaction that failed may have taken the connection with it.
                while !*stop.borrow() && self.transact(&mut client, &mut dice).await.is_ok() {
                    sleep(Duration::from_millis(dice.u64(PACE_MS))).await;
                }
            }
            sleep(PAUSE).await;
        }
    }

    pub(super) async fn read(&self) -> Result<Vec<CommittedEvent>, CrashError> {
        let rows = connect(&self.url).await?.query(READ, &[]).await?;
        let read = |row: &tokio_postgres::Row| {
            let (id, topic, key) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            Ok(CommittedEvent { id, topic, key, version: row.try_get(3)?, poison: row.try_get(4)? })
        };
        rows.iter().map(read).collect()
    }

    async fn transact(
        &self,
        client: &mut Client,
        dice: &mut fastrand::Rng,
    ) -> Result<(), tokio_postgres::Error> {
        let draft = Draft::draw(dice, self.lines, OPEN_MS);
        let mut ids = Vec::new();
        let transaction = client.transaction().await?;
        let filled = fill(&transaction, &draft, &mut ids).await;
        if filled.is_err() || !draft.commits {
            // Nothing is committed, whether or not the server hears of it.
            self.told.ledger().rolled_back.extend(ids);
            filled?;
            return transaction.rollback().await;
        }
        let committed = transaction.commit().await;
        let mut ledger = self.told.ledger();
        match &committed {
            Ok(()) => ledger.committed.extend(ids),
            Err(_) => ledger.unknown.extend(ids),
        }
        committed
    }
}

async fn fill(
    transaction: &Transaction<'_>,
    draft: &Draft,
    ids: &mut Vec<String>,
) -> Result<(), tokio_postgres::Error> {
    for event in &draft.events {
        let version: i64 = transaction.query_one(COUNT, &[&event.name()]).await?.try_get(0)?;
        let params = [&event.topic as _, &event.key as _, &event.payload() as _];
        let id: String = transaction.query_one(EMIT, &params).await?.try_get(0)?;
        let params =
            [&id as _, &event.topic as _, &event.key as _, &version as _, &event.poison as _];
        transaction.execute(KEEP, &params).await?;
        ids.push(id);
    }
    if let Some(span) = draft.left_open {
        sleep(span).await;
    }
    Ok(())
}
