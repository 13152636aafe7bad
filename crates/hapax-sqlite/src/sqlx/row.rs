//! A record as columns, read and written by `sqlx`.

use bytes::Bytes;
use hapax_core::{
    OperationId, StoreError,
    codec::{Row, Sealed},
};
use sqlx::{
    Row as _, Sqlite, SqliteConnection, TypeInfo as _, ValueRef as _,
    query::Query,
    sqlite::{SqliteArguments, SqliteRow},
};

use crate::{
    key::{self, KeyColumn},
    row::{FIND, INSERT, NumberedRow, UPDATE},
};

/// The row stored under this id; the inner error is the row's alone.
pub(super) async fn find(
    connection: &mut SqliteConnection,
    id: OperationId,
) -> sqlx::Result<Option<Result<NumberedRow, StoreError>>> {
    let found = sqlx::query(FIND).bind(&id.as_bytes()[..]).fetch_optional(connection).await?;
    Ok(found.map(|row| columns_of(&row).map_err(StoreError::damaged)))
}

/// Writes over the row with this number, or a new one; says whether it did.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    number: Option<i64>,
    row: &Row,
) -> sqlx::Result<bool> {
    let query = match number {
        Some(number) => sqlx::query(UPDATE).bind(number).bind(row.format),
        None => {
            let query = sqlx::query(INSERT).bind(&row.id.as_bytes()[..]).bind(row.format);
            let query = query.bind(&*row.tenant).bind(&*row.scope);
            match KeyColumn::of(&row.key) {
                KeyColumn::Text(text) => query.bind(text),
                KeyColumn::Uuid(bytes) => query.bind(&bytes[..]),
            }
        }
    };
    let written = rest(query, row).execute(connection).await?;
    Ok(written.rows_affected() == 1)
}

type Asked = Query<'static, Sqlite, SqliteArguments>;

/// The columns that a new row and a changed one have alike.
fn rest(query: Asked, row: &Row) -> Asked {
    let outcome = row.outcome.as_ref();
    query
        .bind(&row.fingerprint[..])
        .bind(row.state)
        .bind(row.fence)
        .bind(row.owner)
        .bind(row.recovery)
        .bind(row.doubt)
        .bind(row.until)
        .bind(row.created_at)
        .bind(row.changed_at.wrapping_sub(row.created_at))
        .bind(row.expires_at.wrapping_sub(row.created_at))
        .bind(row.tombstone)
        .bind(row.request.as_deref())
        .bind(outcome.map(|sealed| &sealed.head[..]))
        .bind(outcome.map(|sealed| &sealed.body[..]))
        .bind(outcome.map(|sealed| &sealed.digest[..]))
}

fn columns_of(row: &SqliteRow) -> sqlx::Result<NumberedRow> {
    let created_at: i64 = row.try_get(13)?;
    let (head, body): (Option<Vec<u8>>, Option<Vec<u8>>) = (row.try_get(18)?, row.try_get(19)?);
    let outcome = match (head, body, digest(row)?) {
        (Some(head), Some(body), Some(digest)) => {
            Some(Sealed { head: head.into(), body: body.into(), digest })
        }
        (_, _, _) => None,
    };
    let stored = Row {
        id: OperationId::from_bytes(sixteen(row, 1)?),
        format: row.try_get(2)?,
        tenant: row.try_get(3)?,
        scope: row.try_get(4)?,
        key: key_of(row)?,
        fingerprint: row.try_get(6)?,
        state: row.try_get(7)?,
        fence: row.try_get(8)?,
        owner: row.try_get(9)?,
        recovery: row.try_get(10)?,
        doubt: row.try_get(11)?,
        until: row.try_get(12)?,
        created_at,
        changed_at: created_at.wrapping_add(row.try_get(14)?),
        expires_at: created_at.wrapping_add(row.try_get(15)?),
        tombstone: row.try_get(16)?,
        request: row.try_get::<Option<Vec<u8>>, _>(17)?.map(Bytes::from),
        outcome,
    };
    Ok(NumberedRow { number: row.try_get(0)?, row: stored })
}

fn key_of(row: &SqliteRow) -> sqlx::Result<String> {
    if row.try_get_raw(5)?.type_info().name() == "BLOB" {
        return sixteen(row, 5).map(|uuid| key::spell(&uuid));
    }
    row.try_get_unchecked(5)
}

fn digest(row: &SqliteRow) -> sqlx::Result<Option<[u8; 16]>> {
    if row.try_get_raw(20)?.is_null() { Ok(None) } else { sixteen(row, 20).map(Some) }
}

fn sixteen(row: &SqliteRow, column: usize) -> sqlx::Result<[u8; 16]> {
    let bytes: Vec<u8> = row.try_get_unchecked(column)?;
    bytes.try_into().map_err(|_| sqlx::Error::ColumnDecode {
        index: column.to_string(),
        source: "it has not 16 bytes".into(),
    })
}
