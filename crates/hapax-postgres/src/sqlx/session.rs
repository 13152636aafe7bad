//! What is said on a connection of sqlx, and what comes back.

use std::ops::DerefMut;

use hapax_sql::{ResultRow, Session, TransactionFault, Value};

use super::driver::{
    self as sqlx, Column as _, PgConnection, Row as _, TypeInfo as _, postgres::PgRow,
};
use crate::transaction::error::fault_of;

/// A connection, with or without an open transaction: lent, or a pool's.
pub(crate) struct DriverConnection<C>(pub(crate) C);

impl<C: DerefMut<Target = PgConnection> + Send> Session for DriverConnection<C> {
    type Row = DriverRow;

    async fn ask(
        &mut self,
        text: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<DriverRow>, TransactionFault> {
        let mut query = sqlx::query(text);
        for value in values {
            query = match *value {
                Value::Number(number) => query.bind(number),
                Value::Text(text) => query.bind(text),
                Value::Bytes(bytes) => query.bind(bytes),
                Value::Numbers(numbers) => query.bind(numbers),
                Value::Texts(texts) => query.bind(texts),
                Value::ManyBytes(many) => query.bind(many),
            };
        }
        let rows = query.fetch_all(&mut *self.0).await.map_err(fault)?;
        Ok(rows.into_iter().map(DriverRow).collect())
    }
}

/// A row of the driver's.
pub(crate) struct DriverRow(PgRow);

impl ResultRow for DriverRow {
    fn maybe_number(&self, at: usize) -> Result<Option<i64>, TransactionFault> {
        let column = self.0.columns().get(at).ok_or_else(|| TransactionFault::unexpected(at))?;
        let number = match column.type_info().name() {
            "INT8" => self.0.try_get(at),
            "INT4" => self.0.try_get::<Option<i32>, _>(at).map(|value| value.map(i64::from)),
            "INT2" => self.0.try_get::<Option<i16>, _>(at).map(|value| value.map(i64::from)),
            "BOOL" => self.0.try_get::<Option<bool>, _>(at).map(|value| value.map(i64::from)),
            _ => return Err(TransactionFault::unexpected(at)),
        };
        number.map_err(TransactionFault::damaged)
    }

    fn maybe_text(&self, at: usize) -> Result<Option<&str>, TransactionFault> {
        self.0.try_get(at).map_err(TransactionFault::damaged)
    }

    fn maybe_bytes(&self, at: usize) -> Result<Option<&[u8]>, TransactionFault> {
        self.0.try_get(at).map_err(TransactionFault::damaged)
    }
}

pub(crate) fn fault(error: sqlx::Error) -> TransactionFault {
    let code = error.as_database_error().and_then(|error| error.code());
    let code = code.map(|code| code.into_owned());
    fault_of(code.as_deref(), error)
}
