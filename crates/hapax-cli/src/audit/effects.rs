//! What was acted on.

use std::path::Path;

use futures_util::TryStreamExt;
use hapax::postgres;
use hapax_core::outbox::EventId;
use hapax_messaging::audit::Audit;
use rusqlite::{Connection, OpenFlags};

use super::{
    error::AuditError,
    lines::{self, ReadLine},
};
use crate::store::StoreAddress;

/// The ids in a file, one for each effect.
pub(super) fn from_file(audit: &mut Audit, path: &Path) -> Result<(), AuditError> {
    let mut unreadable = 0;
    lines::read(path, |line| match line {
        ReadLine::Event { id, .. } => audit.acted(id),
        ReadLine::Unreadable => unreadable += 1,
    })?;
    match unreadable {
        0 => Ok(()),
        lines => Err(AuditError::NotEvents { path: path.to_owned(), lines }),
    }
}

/// What the inbox of this consumer remembers.
pub(super) async fn from_inbox(
    audit: &mut Audit,
    store: &str,
    consumer: &str,
) -> Result<(), AuditError> {
    match store.parse()? {
        StoreAddress::Memory => Err(AuditError::Memory),
        StoreAddress::Sqlite(path) => from_sqlite(audit, &path, consumer),
        StoreAddress::Postgres(address) => from_postgres(audit, &address, consumer).await,
    }
}

const UNKNOWN_TO_SQLITE: &str = "SELECT number FROM hapax_inbox_consumers WHERE name = ?1";
const OF_SQLITE: &str = "SELECT message_id, state FROM hapax_inbox WHERE consumer IN \
     (SELECT number FROM hapax_inbox_consumers WHERE name = ?1)";
const UNKNOWN_TO_POSTGRES: &str = "SELECT number FROM hapax.inbox_consumers WHERE name = $1";
const OF_POSTGRES: &str = "SELECT message_id, state FROM hapax.inbox WHERE consumer IN \
     (SELECT number FROM hapax.inbox_consumers WHERE name = $1)";

fn from_sqlite(audit: &mut Audit, path: &Path, consumer: &str) -> Result<(), AuditError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY);
    let connection = connection.map_err(AuditError::inbox)?;
    let mut known = connection.prepare(UNKNOWN_TO_SQLITE).map_err(AuditError::inbox)?;
    if !known.exists([consumer]).map_err(AuditError::inbox)? {
        return Err(AuditError::NoConsumer { name: consumer.to_owned() });
    }
    let mut records = connection.prepare(OF_SQLITE).map_err(AuditError::inbox)?;
    let mut rows = records.query([consumer]).map_err(AuditError::inbox)?;
    while let Some(row) = rows.next().map_err(AuditError::inbox)? {
        let id: String = row.get(0).map_err(AuditError::inbox)?;
        let state: i16 = row.get(1).map_err(AuditError::inbox)?;
        record(audit, &id, state)?;
    }
    Ok(())
}

async fn from_postgres(
    audit: &mut Audit,
    address: &postgres::Address,
    consumer: &str,
) -> Result<(), AuditError> {
    let (client, connection) = address.connect().await.map_err(AuditError::inbox)?;
    tokio::spawn(connection);
    let known = client.query(UNKNOWN_TO_POSTGRES, &[&consumer]).await;
    if known.map_err(AuditError::inbox)?.is_empty() {
        return Err(AuditError::NoConsumer { name: consumer.to_owned() });
    }
    let rows = client.query_raw(OF_POSTGRES, [consumer]).await.map_err(AuditError::inbox)?;
    let mut rows = std::pin::pin!(rows);
    while let Some(row) = rows.try_next().await.map_err(AuditError::inbox)? {
        let id: String = row.try_get(0).map_err(AuditError::inbox)?;
        let state: i16 = row.try_get(1).map_err(AuditError::inbox)?;
        record(audit, &id, state)?;
    }
    Ok(())
}

/// What became of one message, as the inbox numbers it.
fn record(audit: &mut Audit, id: &str, state: i16) -> Result<(), AuditError> {
    // A message that was never one of ours is no business of this audit.
    let Some(id) = EventId::parse(id) else { return Ok(()) };
    match state {
        DONE => audit.acted(id),
        FAILED | PASSED_OVER => audit.declined(id),
        // It waits for its turn: nobody has acted on it.
        HELD => {}
        state => return Err(AuditError::UnknownState { state }),
    }
    Ok(())
}

const DONE: i16 = 1;
const FAILED: i16 = 2;
const HELD: i16 = 3;
const PASSED_OVER: i16 = 4;
