//! Records as columns, and back.

use std::error::Error;

use bytes::{Bytes, BytesMut};
use hapax_core::{OperationId, StoreError, Timestamp, codec, store::Loaded};
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
    let Some(Id(id)) = column(row, 2)? else { return Ok((at, Ok(Loaded { now, record: None }))) };
    let mut stored = columns(row, id)?;
    stored.outcome = column::<Option<Vec<u8>>>(row, 19)?.map(answer::sealed);
    let record = stored.open(now).map_err(StoreError::from);
    Ok((at, record.map(|record| Loaded { now, record: Some(Box::new(record)) })))
}

/// The columns of `read.sql` and `list.sql`, which are the same up to the request.
pub(crate) fn columns(row: &Row, id: OperationId) -> Result<codec::Row, StatementFailure> {
    Ok(codec::Row {
        id,
        format: column(row, 3)?,
        tenant: column(row, 4)?,
        scope: column(row, 5)?,
        key: column(row, 6)?,
        fingerprint: column(row, 7)?,
        state: column(row, 8)?,
        fence: column(row, 9)?,
        owner: column(row, 10)?,
        recovery: column(row, 11)?,
        doubt: column(row, 12)?,
        until: column(row, 13)?,
        created_at: column(row, 14)?,
        changed_at: column(row, 15)?,
        expires_at: column(row, 16)?,
        tombstone: column(row, 17)?,
        request: column::<Option<Vec<u8>>>(row, 18)?.map(Bytes::from),
        outcome: None,
    })
}

/// A column of an answer; one of another type means that the schema is not ours.
pub(crate) fn column<'a, T: FromSql<'a>>(row: &'a Row, at: usize) -> Result<T, StatementFailure> {
    row.try_get(at).map_err(StatementFailure::unanswered)
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
