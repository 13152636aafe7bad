//! The front door of operations whose effect is in the caller's own database.

use hapax_core::{Database, TransactionError};
use hapax_tower::{IdempotencyLayer, SameTransaction, Tenancy};

use crate::Hapax;

/// Runs operations inside transactions of one pool. Clones share it.
///
/// ```
/// # #[cfg(all(feature = "axum", feature = "sqlx-sqlite"))]
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use axum::{Router, routing::post};
/// use hapax::{Hapax, sqlx_sqlite::Tx, tower::{Tenancy, TxError}};
///
/// async fn pay(mut tx: Tx) -> Result<&'static str, TxError> {
///     sqlx::query("INSERT INTO payments (cents) VALUES (100)").execute(&mut **tx).await?;
///     Ok("paid")
/// }
///
/// # let directory = tempfile::tempdir()?;
/// # let file = directory.path().join("shop.db");
/// # let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
/// # let pool = sqlx::SqlitePool::connect_with(options.create_if_missing(true)).await?;
/// # sqlx::query("CREATE TABLE payments (cents INTEGER)").execute(&pool).await?;
/// hapax::sqlite::sqlx::migrate(&pool).await?;
/// let hapax = Hapax::in_transactions_of(pool.clone()).await?;
/// let app = Router::new().route("/payments", post(pay)).layer(hapax.layer(Tenancy::credential()));
/// # for _ in 0..2 {
/// #     let request = axum::http::Request::post("/payments").header("idempotency-key", "k-1");
/// #     let request = request.header("authorization", "Bearer acme");
/// #     let request = request.body(axum::body::Body::empty())?;
/// #     let answer = tower::ServiceExt::oneshot(app.clone(), request).await?;
/// #     assert_eq!(answer.status(), 200);
/// # }
/// # let paid: i64 = sqlx::query_scalar("SELECT count(*) FROM payments").fetch_one(&pool).await?;
/// # assert_eq!(paid, 1);
/// # Ok(())
/// # }
/// # #[cfg(not(all(feature = "axum", feature = "sqlx-sqlite")))]
/// # fn main() {}
/// ```
#[derive(Debug, Clone)]
pub struct InTransactions<D> {
    mode: SameTransaction<D>,
}

impl Hapax {
    /// Keeps operations in the transactions in which they have their effect: claim, writes and answer
    /// commit or vanish together. Takes a pool of deadpool (feature `deadpool`) or of sqlx (features
    /// `sqlx-postgres`, `sqlx-sqlite`), or a database made with options of its own.
    ///
    /// The schema must be there: `hapax migrate`, or `migrate` of the backend.
    pub async fn in_transactions_of<P: IntoDatabase>(
        pool: P,
    ) -> Result<InTransactions<P::Database>, TransactionError> {
        Ok(InTransactions { mode: SameTransaction::connect(pool.into_database()).await? })
    }
}

impl<D: Database> InTransactions<D> {
    /// A layer around services whose handlers write through their [`Tx`](hapax_tower::Tx).
    pub fn layer(&self, tenancy: Tenancy) -> IdempotencyLayer<SameTransaction<D>> {
        IdempotencyLayer::in_transactions(self.mode.clone(), tenancy)
    }

    /// What runs operations in transactions of this database, without HTTP.
    pub fn transactional(&self) -> &hapax_engine::Transactional<D> {
        self.mode.transactional()
    }
}

/// A pool that becomes a database which keeps records in its caller's transactions.
///
/// ```
/// use axum::{Router, routing::post};
/// use hapax::{Hapax, IntoDatabase, TransactionError, tower::Tenancy};
///
/// /// For services that leave the choice of the pool to whoever starts them.
/// async fn app<P: IntoDatabase>(pool: P) -> Result<Router, TransactionError> {
///     let layer = Hapax::in_transactions_of(pool).await?.layer(Tenancy::credential());
///     Ok(Router::new().route("/payments", post(|| async { "paid" })).layer(layer))
/// }
/// ```
pub trait IntoDatabase {
    /// The database.
    type Database: Database;

    /// The pool as that.
    fn into_database(self) -> Self::Database;
}

/// A database is one already; a pool becomes one with the options that databases have by default.
macro_rules! into_database {
    ($($feature:literal: $pool:ty => $database:ty;)*) => {$(
        #[cfg(feature = $feature)]
        impl IntoDatabase for $pool {
            type Database = $database;

            fn into_database(self) -> $database {
                <$database>::new(self)
            }
        }

        #[cfg(feature = $feature)]
        impl IntoDatabase for $database {
            type Database = Self;

            fn into_database(self) -> Self {
                self
            }
        }
    )*};
}

into_database! {
    "deadpool": deadpool_postgres::Pool => hapax_postgres::transaction::deadpool::Database;
    "sqlx-postgres": sqlx::PgPool => hapax_postgres::transaction::sqlx::Database;
    "sqlx-sqlite": sqlx::SqlitePool => hapax_sqlite::sqlx::Database;
}

/// Same-transaction mode on a deadpool of tokio-postgres connections.
#[cfg(feature = "deadpool")]
pub mod deadpool {
    pub use hapax_postgres::transaction::deadpool::{Database, Transaction};

    /// The transaction of a request, which its handler takes.
    ///
    /// ```
    /// use hapax::{deadpool::Tx, tower::TxError};
    ///
    /// async fn pay(tx: Tx) -> Result<&'static str, TxError> {
    ///     tx.execute("INSERT INTO payments (cents) VALUES (100)", &[]).await?;
    ///     Ok("paid")
    /// }
    /// ```
    pub type Tx = hapax_tower::Tx<Database>;
}

/// Same-transaction mode on a sqlx pool of PostgreSQL.
#[cfg(feature = "sqlx-postgres")]
pub mod sqlx_postgres {
    pub use hapax_postgres::transaction::sqlx::{Database, Transaction};

    /// The transaction of a request, which its handler takes.
    ///
    /// ```
    /// use hapax::{sqlx_postgres::Tx, tower::TxError};
    ///
    /// async fn pay(mut tx: Tx) -> Result<&'static str, TxError> {
    ///     sqlx::query("INSERT INTO payments (cents) VALUES (100)").execute(&mut **tx).await?;
    ///     Ok("paid")
    /// }
    /// ```
    pub type Tx = hapax_tower::Tx<Database>;
}

/// Same-transaction mode on a pool of sqlx 0.8: `Hapax::in_transactions_of(Database::new(pool))`.
#[cfg(feature = "sqlx-0_8-postgres")]
pub mod sqlx_0_8_postgres {
    pub use hapax_postgres::transaction::sqlx_0_8::{Database, Transaction};

    /// The transaction of a request, which its handler takes.
    ///
    /// ```
    /// use hapax::{Event, sqlx_0_8_postgres::Tx, tower::TxError};
    ///
    /// async fn pay(mut tx: Tx) -> Result<&'static str, TxError> {
    ///     // A statement runs on `&mut **tx`; this is published if the transaction commits.
    ///     tx.emit(Event::new("payments.made", "order-17", "100")?);
    ///     Ok("paid")
    /// }
    /// ```
    pub type Tx = hapax_tower::Tx<Database>;

    impl super::IntoDatabase for Database {
        type Database = Self;

        fn into_database(self) -> Self {
            self
        }
    }
}

/// Same-transaction mode on a sqlx pool of SQLite.
#[cfg(feature = "sqlx-sqlite")]
pub mod sqlx_sqlite {
    pub use hapax_sqlite::sqlx::{Database, Transaction};

    /// The transaction of a request, which its handler takes.
    ///
    /// ```
    /// use hapax::{sqlx_sqlite::Tx, tower::TxError};
    ///
    /// async fn pay(mut tx: Tx) -> Result<&'static str, TxError> {
    ///     sqlx::query("INSERT INTO payments (cents) VALUES (100)").execute(&mut **tx).await?;
    ///     Ok("paid")
    /// }
    /// ```
    pub type Tx = hapax_tower::Tx<Database>;
}
