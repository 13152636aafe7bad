//! Records as columns, and back.

use std::{borrow::Borrow, error::Error};

use bytes::BytesMut;
use hapax_core::{OperationId, StoreError, Timestamp, codec, store::Loaded};
use hapax_sql::{ResultRow, TransactionFault, operation::stored_row};
use tokio_postgres::{
    Row,
    types::{FromSql, IsNull, ToSql, Type, to_sql_checked},
};

use crate::{answer, connection::SharedConnection, error::StatementFailure};

const READ: &str = include_str!("sql/read.sql");

/// An operation's id as PostgreSQL keeps it: sixteen bytes of type `uuid`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Id(pub(crate) OperationId);

/// Reads what is stored under these ids, in order, as of now.
pub(crate) async fn read(
    wire: &SharedConnection,
    ids: &[OperationId],
) -> Result<Vec<Result<Loaded, StoreError>>, StatementFailure> {
    let ids: Vec<_> = ids.iter().copied().map(Id).collect();
    let rows = wire.query(READ, &[&ids]).await?;
    let mut found: Vec<(i64, Result<Loaded, StoreError>)> =
        rows.iter().map(loaded).collect::<Result<_, _>>()?;
    found.sort_unstable_by_key(|(at, _)| *at);
    Ok(found.into_iter().map(|(_, loaded)| loaded).collect())
}

/// A row of `read.sql`: which of the ids it is about, and what is stored under it.
fn loaded(row: &Row) -> Result<(i64, Result<Loaded, StoreError>), StatementFailure> {
    let (at, now) = (column(row, 0)?, Timestamp::from_micros(column(row, 1)?));
    let Some(stored) = stored(row)? else { return Ok((at, Ok(Loaded { now, record: None }))) };
    let record = stored.open(now).map_err(StoreError::from);
    Ok((at, record.map(|record| Loaded { now, record: Some(Box::new(record)) })))
}

/// What is in a row of `read.sql` or `list.sql`, whose last column is the id; `None` if that is.
pub(crate) fn stored(row: &Row) -> Result<Option<codec::Row>, StatementFailure> {
    let Some(Id(id)) = column(row, 19)? else { return Ok(None) };
    let stored = stored_row(&TokioRow(row), id, answer::unpack);
    stored.map(Some).map_err(StatementFailure::of_row)
}

/// A column of an answer; one of another type means that the schema is not ours.
pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, StatementFailure> {
    row.try_get(at).map_err(StatementFailure::unanswered)
}

/// A row of `tokio-postgres`, or one that is lent.
pub(crate) struct TokioRow<R>(pub(crate) R);

impl<R: Borrow<Row>> ResultRow for TokioRow<R> {
    fn maybe_number(&self, at: usize) -> Result<Option<i64>, TransactionFault> {
        let row = self.0.borrow();
        let column = row.columns().get(at).ok_or_else(|| TransactionFault::unexpected(at))?;
        let number = match *column.type_() {
            Type::INT8 => row.try_get(at),
            Type::INT4 => row.try_get::<_, Option<i32>>(at).map(|value| value.map(i64::from)),
            Type::INT2 => row.try_get::<_, Option<i16>>(at).map(|value| value.map(i64::from)),
            Type::BOOL => row.try_get::<_, Option<bool>>(at).map(|value| value.map(i64::from)),
            _ => return Err(TransactionFault::unexpected(at)),
        };
        number.map_err(TransactionFault::damaged)
    }

    fn maybe_text(&self, at: usize) -> Result<Option<&str>, TransactionFault> {
        self.0.borrow().try_get(at).map_err(TransactionFault::damaged)
    }

    fn maybe_bytes(&self, at: usize) -> Result<Option<&[u8]>, TransactionFault> {
        self.0.borrow().try_get(at).map_err(TransactionFault::damaged)
    }
}

impl ToSql for Id {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(self.0.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Id {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(OperationId::from_bytes(raw.try_into()?)))
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::UUID
    }
}
