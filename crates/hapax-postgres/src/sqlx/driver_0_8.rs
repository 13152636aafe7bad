//! What is used of sqlx 0.8, by the names that the crate `sqlx` gives it.
//!
//! That crate would bring its SQLite into every lock file, and only one SQLite can be linked.

pub(crate) use sqlx_core_0_8::{
    Error, column::Column, pool, query::query, row::Row, transaction::Transaction,
    type_info::TypeInfo,
};
pub(crate) use sqlx_postgres_0_8::{PgConnection, PgPool, Postgres};

pub(crate) mod postgres {
    pub(crate) use sqlx_postgres_0_8::PgRow;
}
