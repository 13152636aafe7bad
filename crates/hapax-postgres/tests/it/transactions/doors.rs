//! The drivers, as their users call them.

use std::str::FromStr;

use deadpool_postgres::{Manager, Pool};
use hapax_core::{Database, Event, TransactionError, inbox::Inbox, outbox::Ringer};
use hapax_postgres::transaction::{
    ForMessages, ForOperation, Isolation, deadpool, sqlx as through_sqlx,
    sqlx_0_8 as through_sqlx_0_8,
};
use tokio_postgres::{Config, NoTls, config::Host};

/// An error of the work's own.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Connections of one pool.
const POOL: u32 = 20;

/// A driver: how its pool is made, and how work writes through its transactions.
pub(crate) trait Door: 'static {
    type Database: Database<Transaction = Self::Transaction<ForOperation>>
        + Inbox<Transaction = Self::Transaction<ForMessages>>;
    /// For an operation, or for messages.
    type Transaction<P: Send + 'static>: Send + 'static;

    fn open(config: &Config, isolation: Option<Isolation>) -> Self::Database;

    fn rings(database: Self::Database, ringer: Ringer) -> Self::Database;

    /// Runs a statement of the work's own.
    fn write<P: Send + 'static>(
        tx: &mut Self::Transaction<P>,
        text: String,
    ) -> impl Future<Output = Result<(), BoxError>> + Send;

    fn emit<P: Send + 'static>(tx: &mut Self::Transaction<P>, event: Event);

    /// Publishes events by themselves.
    fn emit_alone(
        database: &Self::Database,
        events: Vec<Event>,
    ) -> impl Future<Output = Result<(), TransactionError>> + Send;
}

pub(crate) struct Deadpool;

impl Door for Deadpool {
    type Database = deadpool::Database;
    type Transaction<P: Send + 'static> = deadpool::Transaction<P>;

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

    async fn write<P: Send + 'static>(
        tx: &mut deadpool::Transaction<P>,
        text: String,
    ) -> Result<(), BoxError> {
        tx.execute(&text, &[]).await?;
        Ok(())
    }

    fn emit<P: Send + 'static>(tx: &mut deadpool::Transaction<P>, event: Event) {
        tx.emit(event);
    }

    async fn emit_alone(
        database: &deadpool::Database,
        events: Vec<Event>,
    ) -> Result<(), TransactionError> {
        database.emit(events).await
    }
}

pub(crate) struct Sqlx;
pub(crate) struct Sqlx08;

/// A version of sqlx: they differ in where things are, and in what a statement is.
macro_rules! sqlx_door {
    ($door:ident, $version:ident, $($postgres:ident)::+, $statement:expr) => {
        impl Door for $door {
            type Database = $version::Database;
            type Transaction<P: Send + 'static> = $version::Transaction<P>;

            fn open(config: &Config, isolation: Option<Isolation>) -> $version::Database {
                use $($postgres)::+::{PgConnectOptions, PgPoolOptions};

                let Host::Tcp(host) = &config.get_hosts()[0] else {
                    panic!("the test server listens on TCP, not on {config:?}")
                };
                let options = PgConnectOptions::from_str("postgres://postgres@localhost").unwrap();
                let options = options.host(host).port(config.get_ports()[0]);
                let options = options.database(config.get_dbname().unwrap());
                let pool = PgPoolOptions::new().max_connections(POOL).connect_lazy_with(options);
                let database = $version::Database::new(pool);
                match isolation {
                    Some(isolation) => database.isolation(isolation),
                    None => database,
                }
            }

            fn rings(database: $version::Database, ringer: Ringer) -> $version::Database {
                database.rings(ringer)
            }

            async fn write<P: Send + 'static>(
                tx: &mut $version::Transaction<P>,
                text: String,
            ) -> Result<(), BoxError> {
                $statement(text).execute(&mut **tx).await?;
                Ok(())
            }

            fn emit<P: Send + 'static>(tx: &mut $version::Transaction<P>, event: Event) {
                tx.emit(event);
            }

    async fn emit_alone(
        database: &$version::Database,
        events: Vec<Event>,
    ) -> Result<(), TransactionError> {
        database.emit(events).await
    }
        }
    };
}

sqlx_door!(Sqlx, through_sqlx, sqlx::postgres, |text| sqlx::query(sqlx::AssertSqlSafe(text)));
sqlx_door!(Sqlx08, through_sqlx_0_8, sqlx_postgres_0_8, |text: String| {
    sqlx_core_0_8::query::query(text.leak())
});
