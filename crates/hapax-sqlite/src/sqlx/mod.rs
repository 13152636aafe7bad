//! Operations inside transactions of an `sqlx` pool. Needs the feature `sqlx`.
//!
//! [`migrate`] makes the tables, [`Database`] is what `hapax_engine::Transactional` and the tower
//! layer drive, and a handler writes through its [`Transaction`] as through any connection:
//!
//! ```
//! use hapax_core::{AttemptAnswer, Database as _, Outcome};
//! use hapax_sqlite::sqlx::{Database, Transaction, migrate};
//!
//! async fn pay(tx: &mut Transaction) -> sqlx::Result<AttemptAnswer> {
//!     sqlx::query("INSERT INTO payments (cents) VALUES (100)").execute(&mut **tx).await?;
//!     Ok(AttemptAnswer::completed(Outcome::bare(201)))
//! }
//!
//! # async fn start() -> Result<(), Box<dyn std::error::Error>> {
//! let pool = sqlx::SqlitePool::connect("sqlite:shop.db").await?;
//! migrate(&pool).await?;
//! let database = Database::new(pool);
//! let salt = database.salt().await?;
//! # Ok(())
//! # }
//! ```

mod database;
mod error;
mod inbox;
mod migrate;
mod outbox;
mod session;
mod transaction;

pub use hapax_sql::inbox::ForMessages;

pub use self::{
    database::Database,
    error::NotMigrated,
    migrate::migrate,
    outbox::emit,
    transaction::{ForOperation, Transaction},
};
