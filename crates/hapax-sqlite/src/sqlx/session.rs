//! What is said on a connection of `sqlx`, and what comes back.

use hapax_sql::{ResultRow, Session, TransactionFault, Value};
use sqlx::{Row as _, TypeInfo as _, ValueRef as _, sqlite::SqliteRow};

use super::{error::fault, transaction::CleanConnection};
use crate::session::{json_bytes, json_numbers, json_texts};

impl Session for CleanConnection {
    type Row = SqlxRow;

    async fn ask(
        &mut self,
        text: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<SqlxRow>, TransactionFault> {
        let mut query = sqlx::query(text);
        for value in values {
            query = match *value {
                Value::Number(number) => query.bind(number),
                Value::Text(text) => query.bind(text.map(str::to_owned)),
                Value::Bytes(bytes) => query.bind(bytes.map(<[u8]>::to_vec)),
                Value::Numbers(numbers) => query.bind(json_numbers(numbers)),
                Value::Texts(texts) => query.bind(json_texts(texts)),
                Value::ManyBytes(many) => query.bind(json_bytes(many)),
            };
        }
        self.look_dirty();
        let answered = query.fetch_all(&mut **self).await;
        self.look_clean();
        Ok(answered.map_err(fault)?.into_iter().map(SqlxRow).collect())
    }
}

/// A row of the driver's.
pub(super) struct SqlxRow(SqliteRow);

impl SqlxRow {
    /// The column, if it is of this kind; SQLite keeps a kind for each value.
    fn maybe<'r, T>(&'r self, at: usize, kind: &str) -> Result<Option<T>, TransactionFault>
    where
        T: sqlx::Decode<'r, sqlx::Sqlite>,
    {
        let value = self.0.try_get_raw(at).map_err(TransactionFault::damaged)?;
        if value.is_null() {
            return Ok(None);
        }
        if value.type_info().name() != kind {
            return Err(TransactionFault::unexpected(at));
        }
        T::decode(value).map(Some).map_err(TransactionFault::damaged)
    }
}

impl ResultRow for SqlxRow {
    fn maybe_number(&self, at: usize) -> Result<Option<i64>, TransactionFault> {
        self.maybe(at, "INTEGER")
    }

    fn maybe_text(&self, at: usize) -> Result<Option<&str>, TransactionFault> {
        self.maybe(at, "TEXT")
    }

    fn maybe_bytes(&self, at: usize) -> Result<Option<&[u8]>, TransactionFault> {
        self.maybe(at, "BLOB")
    }
}
