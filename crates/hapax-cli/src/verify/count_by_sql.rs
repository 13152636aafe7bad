//! A statement in a database counts.

use std::{path::Path, sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use hapax::postgres::Address;
use hapax_examine::{EffectOracle, OracleFault, OracleLevel};
use rusqlite::{Connection, OpenFlags};
use tokio::sync::Mutex;
use tokio_postgres::{Client, Row, types::Type};

use super::error::VerifyError;
use crate::{sentence, store::StoreAddress};

const PATIENCE: Duration = Duration::from_secs(30);
/// A statement that goes on for longer than anybody waits is ended by the server.
const SESSION: &str = "SET application_name = 'hapax verify'; SET statement_timeout = '30s'";

/// A statement whose first column is a number, and whose `$1` is the marker.
#[derive(Debug)]
pub(super) struct CountBySql {
    statement: Arc<str>,
    /// As it may be shown.
    place: String,
    database: CountedDatabase,
}

#[derive(Debug)]
enum CountedDatabase {
    Sqlite(Arc<Path>),
    /// With the session, once there is one.
    Postgres(Box<Address>, Mutex<Option<Client>>),
}

impl CountBySql {
    pub(super) fn new(statement: &str, store: &str) -> Result<Self, VerifyError> {
        let address: StoreAddress = store.parse().map_err(VerifyError::CountStore)?;
        let place = address.to_string();
        let database = match address {
            StoreAddress::Memory => return Err(VerifyError::CountMemory),
            StoreAddress::Sqlite(path) => CountedDatabase::Sqlite(path.into()),
            StoreAddress::Postgres(address) => {
                CountedDatabase::Postgres(Box::new(address), Mutex::default())
            }
        };
        Ok(Self { statement: statement.into(), place, database })
    }

    async fn ask(&self, marker: &str) -> Result<u64, String> {
        match &self.database {
            CountedDatabase::Sqlite(path) => {
                let (path, statement) = (path.clone(), self.statement.clone());
                let marker = marker.to_owned();
                let counting =
                    tokio::task::spawn_blocking(move || in_sqlite(&path, &statement, &marker));
                counting.await.map_err(|error| error.to_string())?
            }
            CountedDatabase::Postgres(address, session) => {
                let mut session = session.lock().await;
                let mut client = match session.take().filter(|client| !client.is_closed()) {
                    Some(client) => client,
                    None => connect(address).await?,
                };
                let counted = in_postgres(&mut client, &self.statement, marker).await;
                *session = Some(client);
                counted
            }
        }
    }
}

impl EffectOracle for CountBySql {
    fn count<'a>(&'a self, marker: &'a str) -> BoxFuture<'a, Result<u64, OracleFault>> {
        Box::pin(async move {
            let fault = |reason| OracleFault { reason: format!("--count-sql: {reason}") };
            let asking = tokio::time::timeout(PATIENCE, self.ask(marker));
            asking
                .await
                .unwrap_or_else(|_| Err(format!("no answer came within {PATIENCE:?}")))
                .map_err(fault)
        })
    }

    fn level(&self) -> OracleLevel {
        OracleLevel::Counted
    }

    fn describe(&self) -> String {
        format!("`{}` in {}", self.statement, self.place)
    }
}

async fn connect(address: &Address) -> Result<Client, String> {
    let (client, connection) = address.connect().await.map_err(|error| sentence(&error))?;
    tokio::spawn(connection);
    client.batch_execute(SESSION).await.map_err(|error| sentence(&error))?;
    Ok(client)
}

async fn in_postgres(client: &mut Client, statement: &str, marker: &str) -> Result<u64, String> {
    let counting = async {
        let transaction = client.build_transaction().read_only(true).start().await?;
        let rows = transaction.query(statement, &[&marker]).await?;
        transaction.rollback().await?;
        Ok::<_, tokio_postgres::Error>(rows)
    };
    let rows = counting.await.map_err(|error| sentence(&error))?;
    match rows.as_slice() {
        [row] => number(row),
        rows => Err(format!("it has {} rows: let it answer with one number", rows.len())),
    }
}

fn number(row: &Row) -> Result<u64, String> {
    let wrong = || "its first column is no number: write count(*)".to_owned();
    let column = row.columns().first().ok_or_else(wrong)?.type_();
    let found = if *column == Type::INT8 {
        row.try_get::<_, i64>(0)
    } else if *column == Type::INT4 {
        row.try_get::<_, i32>(0).map(i64::from)
    } else {
        return Err(wrong());
    };
    let found = found.map_err(|error| sentence(&error))?;
    u64::try_from(found).map_err(|_| format!("it counted {found}"))
}

fn in_sqlite(path: &Path, statement: &str, marker: &str) -> Result<u64, String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let counting = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        connection.query_row(statement, [marker], |row| row.get::<_, i64>(0))
    };
    let found = counting().map_err(|error| sentence(&error))?;
    u64::try_from(found).map_err(|_| format!("it counted {found}"))
}
