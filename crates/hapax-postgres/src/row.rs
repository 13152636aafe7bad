//! Records as columns, and back.

use std::{collections::HashMap, error::Error};

use bytes::{Bytes, BytesMut};
use hapax_core::{
    OperationId, StoreError, Timestamp,
    codec::{self, Sealed},
    store::Loaded,
};
use tokio_postgres::{
    Row,
    types::{FromSql, IsNull, ToSql, Type, to_sql_checked},
};

use crate::{connection::SharedConnection, error::StatementFailure};

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
    let mut found: Vec<LocatedRow> = rows.iter().map(stored).collect::<Result<_, _>>()?;
    found.sort_unstable_by_key(|stored| stored.at);
    let mut outcomes = outcomes(wire, &found).await?;
    Ok(found.into_iter().map(|stored| stored.open(&mut outcomes)).collect())
}

/// The place of an outcome: its bucket and its number.
type OutcomePlace = (i32, i64);

struct LocatedRow {
    at: i64,
    now: Timestamp,
    row: Option<(codec::Row, Option<OutcomePlace>)>,
}

impl LocatedRow {
    fn open(
        self,
        outcomes: &mut HashMap<OutcomePlace, Result<Sealed, StoreError>>,
    ) -> Result<Loaded, StoreError> {
        let now = self.now;
        let Some((mut row, place)) = self.row else { return Ok(Loaded { now, record: None }) };
        row.outcome = place.and_then(|place| outcomes.remove(&place)).transpose()?;
        Ok(Loaded { now, record: Some(Box::new(row.open(now)?)) })
    }
}

/// Reads each outcome from the table of its bucket: a join with all of them would lock them all.
async fn outcomes(
    wire: &SharedConnection,
    found: &[LocatedRow],
) -> Result<HashMap<OutcomePlace, Result<Sealed, StoreError>>, StatementFailure> {
    let mut wanted: HashMap<i32, Vec<i64>> = HashMap::new();
    let places = found.iter().filter_map(|stored| stored.row.as_ref()?.1);
    places.for_each(|(bucket, id)| wanted.entry(bucket).or_default().push(id));
    let mut outcomes = HashMap::new();
    for (bucket, ids) in wanted {
        let text = format!(
            "SELECT id, head, body, digest FROM hapax.responses_{bucket} WHERE id = ANY($1)"
        );
        let rows = match wire.query_once(&text, &[(&ids, Type::INT8_ARRAY)]).await {
            Ok(rows) => rows,
            Err(failure) if failure.is_missing_table() => continue,
            Err(failure) => return Err(failure),
        };
        for row in rows {
            outcomes.insert((bucket, column(&row, 0)?), sealed(&row)?);
        }
    }
    Ok(outcomes)
}

fn sealed(row: &Row) -> Result<Result<Sealed, StoreError>, StatementFailure> {
    let (head, body, digest) = (column(row, 1)?, column(row, 2)?, column::<&[u8]>(row, 3)?);
    let bytes = |bytes: Vec<u8>| Bytes::from(bytes);
    Ok(match digest.try_into() {
        Ok(digest) => Ok(Sealed { head: bytes(head), body: bytes(body), digest }),
        Err(_) => Err(StoreError::damaged("the stored digest does not have sixteen bytes")),
    })
}

fn stored(row: &Row) -> Result<LocatedRow, StatementFailure> {
    let (at, now) = (column(row, 0)?, Timestamp::from_micros(column(row, 1)?));
    let Some(Id(id)) = column(row, 2)? else { return Ok(LocatedRow { at, now, row: None }) };
    let bucket: Option<i32> = column(row, 19)?;
    let response: Option<i64> = column(row, 20)?;
    Ok(LocatedRow { at, now, row: Some((columns(row, id)?, bucket.zip(response))) })
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
