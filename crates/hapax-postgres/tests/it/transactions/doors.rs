//! The two drivers, as their users call them.

use std::str::FromStr;

use deadpool_postgres::{Manager, Pool};
use hapax_core::{Database, Event, outbox::Ringer};
use hapax_postgres::transaction::{Isolation, deadpool, sqlx as through_sqlx};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use tokio_postgres::{Config, NoTls, config::Host};

/// An error of the work's own.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Connections of one pool.
const POOL: u32 = 20;

/// A driver: how its pool is made, and how work writes through its transactions.
pub(crate) trait Door: 'static {
    type Database: Database<Transaction = Self::Transaction>;
    type Transaction: Send + 'static;

    fn open(config: &Config, isolation: Option<Isolation>) -> Self::Database;

    fn rings(database: Self::Database, ringer: Ringer) -> Self::Database;

    /// Runs a statement of the work's own.
    fn write(
        tx: &mut Self::Transaction,
        text: String,
    ) -> impl Future<Output = Result<(), BoxError>> + Send;

    fn emit(tx: &mut Self::Transaction, event: Event);
}

pub(crate) struct Deadpool;

impl Door for Deadpool {
    type Database = deadpool::Database;
    type Transaction = deadpool::Transaction;

    fn open(config: &Config, isolation: Option<Isolation>) -> deadpool::Database {
        let pool = Pool::builder(Manager::new(config.clone(), NoTls));
        let pool = pool.max_size(POOL as usize).build().unwrap();
        let database = deadpool::Database::new(pool);
        match isolation {
            Some(isolation) => database.isolation(isolation),
            None => database,
        }
    }

    fn rings(database: deadpool::Database, ringer: Ringer) -> deadpool::Database {
        database.rings(ringer)
    }

    async fn write(tx: &mut deadpool::Transaction, text: String) -> Result<(), BoxError> {
        tx.execute(&text, &[]).await?;
        Ok(())
    }

    fn emit(tx: &mut deadpool::Transaction, event: Event) {
        tx.emit(event);
    }
}

pub(crate) struct Sqlx;

impl Door for Sqlx {
    type Database = through_sqlx::Database;
    type Transaction = through_sqlx::Transaction;

    fn open(config: &Config, isolation: Option<Isolation>) -> through_sqlx::Database {
        let Host::Tcp(host) = &config.get_hosts()[0] else {
            panic!("the test server listens on TCP, not on {config:?}")
        };
        let options = PgConnectOptions::from_str("postgres://postgres@localhost").unwrap();
        let options = options.host(host).port(config.get_ports()[0]);
        let options = options.database(config.get_dbname().unwrap());
        let pool = PgPoolOptions::new().max_connections(POOL).connect_lazy_with(options);
        let database = through_sqlx::Database::new(pool);
        match isolation {
            Some(isolation) => database.isolation(isolation),
            None => database,
        }
    }

    fn rings(database: through_sqlx::Database, ringer: Ringer) -> through_sqlx::Database {
        database.rings(ringer)
    }

    async fn write(tx: &mut through_sqlx::Transaction, text: String) -> Result<(), BoxError> {
        sqlx::query(sqlx::AssertSqlSafe(text)).execute(&mut **tx).await?;
        Ok(())
    }

    fn emit(tx: &mut through_sqlx::Transaction, event: Event) {
        tx.emit(event);
    }
}
