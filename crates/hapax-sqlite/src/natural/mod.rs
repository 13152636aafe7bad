//! Writes that are harmless to repeat without a key of ours, because they say what shall be true
//! afterwards, and tell what happened.
//!
//! Each closes a race that a `SELECT` followed by a write leaves open, and works on your own tables:
//!
//! - [`upsert`]: a row is as given; the older of two messages does not win;
//! - [`transition`]: a row moves to its next state once;
//! - [`update_versioned`]: nobody undoes what somebody else wrote meanwhile;
//! - [`set_if`]: one value instead of another, and nothing is lost without a word;
//! - [`post`]: an amount is booked once, and no account is overdrawn.
//!
//! Inside a transaction they are part of it; otherwise each is a transaction of its own. A
//! transaction that has read before it writes must have begun with `BEGIN IMMEDIATE`, as those of
//! [`once`](crate::once) do: SQLite refuses a write over what somebody else changed meanwhile.
//! Names of tables and columns are quoted, so any text is a name and never SQL.
//!
//! ```
//! use hapax_sqlite::natural::{NaturalRow, Transition, transition};
//!
//! let connection = rusqlite::Connection::open_in_memory()?;
//! connection.execute_batch(
//!     "CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT); INSERT INTO orders VALUES (7, 'new')",
//! )?;
//! let order = NaturalRow { table: "orders", key: &[("id", &7)] };
//! let pay = || transition(&connection, &order, "state", &["new"], "paid");
//! assert_eq!(pay()?, Transition::Moved);
//! assert_eq!(pay()?, Transition::AlreadyThere);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod ledger;
mod set_if;
mod sql;
mod transition;
mod upsert;
mod versioned;

use rusqlite::{
    Connection, ToSql, Transaction, TransactionBehavior,
    types::{ToSqlOutput, Value, ValueRef},
};

use self::sql::Sql;
pub use self::{
    ledger::{LedgerEntry, Posted, balance, post},
    set_if::{SetIf, set_if},
    transition::{Transition, transition},
    upsert::{Upserted, upsert},
    versioned::{Versioned, update_versioned},
};

/// A column and its value.
pub type Field<'a> = (&'a str, &'a dyn ToSql);

/// One row of a table, by its natural key.
///
/// ```
/// use hapax_sqlite::natural::NaturalRow;
///
/// let seat = NaturalRow { table: "seats", key: &[("flight", &"HX17"), ("seat", &"12A")] };
/// assert_eq!(seat.key.len(), 2);
/// ```
#[derive(Clone, Copy)]
pub struct NaturalRow<'a> {
    /// The table.
    pub table: &'a str,
    /// Every column of a unique index, and what it holds. Never NULL.
    pub key: &'a [Field<'a>],
}

impl std::fmt::Debug for NaturalRow<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let columns: Vec<_> = self.key.iter().map(|(column, _)| column).collect();
        f.debug_struct("NaturalRow").field("table", &self.table).field("key", &columns).finish()
    }
}

/// Why a write that is harmless to repeat was not made. Nothing was written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NaturalError {
    /// A key is empty or holds NULL, or a name cannot be one.
    #[error("{what}")]
    Argument {
        /// What is wrong with which.
        what: String,
    },
    /// The key does not name one row.
    #[error("the key names {rows} rows of {table}: name every column of a unique index")]
    NotOneRow {
        /// The table.
        table: String,
        /// How many rows it names.
        rows: usize,
    },
    /// SQLite failed.
    #[error("SQLite failed")]
    Sqlite(#[from] rusqlite::Error),
}

impl NaturalError {
    fn argument(what: impl Into<String>) -> Self {
        Self::Argument { what: what.into() }
    }
}

impl<'a> NaturalRow<'a> {
    fn check(&self) -> Result<(), NaturalError> {
        if self.key.is_empty() {
            return Err(NaturalError::argument("the key has no columns"));
        }
        for (column, value) in self.key {
            let value = value.to_sql()?;
            if let ToSqlOutput::Borrowed(ValueRef::Null) | ToSqlOutput::Owned(Value::Null) = value {
                return Err(NaturalError::argument(format!("{column} of the key is NULL")));
            }
        }
        Ok(())
    }

    /// `t.k1 = ?1 AND t.k2 = ?2`. Columns are named with their table, because SQLite takes a quoted
    /// name that is no column for a text.
    fn matches(&self, sql: &mut Sql<'a>) -> Result<(), NaturalError> {
        sql.each(self.key, " AND ", |sql, (column, value)| {
            sql.column(column)?.text(" = ").value(*value);
            Ok(())
        })
    }

    /// Runs a statement that must touch this row or none, and says which.
    fn touch(&self, connection: &Connection, sql: &Sql<'a>) -> Result<bool, NaturalError> {
        match sql.execute(connection)? {
            0 => Ok(false),
            1 => Ok(true),
            rows => Err(NaturalError::NotOneRow { table: self.table.to_owned(), rows }),
        }
    }

    /// What `expression` says about this row; `None` if it is not there.
    fn read<T: rusqlite::types::FromSql>(
        &self,
        connection: &Connection,
        expression: impl FnOnce(&mut Sql<'a>) -> Result<(), NaturalError>,
    ) -> Result<Option<T>, NaturalError> {
        let mut sql = Sql::new("SELECT ");
        expression(&mut sql)?;
        sql.text(" FROM ").name(self.table)?.text(" AS t WHERE ");
        self.matches(&mut sql)?;
        sql.read(connection)
    }
}

/// Makes `work` all or nothing, with the write lock held from its first write on.
fn atomically<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> Result<T, NaturalError>,
) -> Result<T, NaturalError> {
    if connection.is_autocommit() {
        let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        return Ok(done);
    }
    connection.execute_batch("SAVEPOINT hapax_natural")?;
    let done = work(connection);
    if done.is_err() && !connection.is_autocommit() {
        connection.execute_batch("ROLLBACK TO hapax_natural; RELEASE hapax_natural")?;
    } else if done.is_ok() {
        connection.execute_batch("RELEASE hapax_natural")?;
    }
    done
}
