//! What the parts of an operation came to, as columns.

use bytes::Bytes;
use hapax_core::{
    OperationId, StateTag, StoreError, StoredStep, Timestamp,
    step::{StepRow, open_life},
    store::KeepStep,
};
use rusqlite::{Connection, params};

/// Keeps a step, if its attempt runs the operation; says whether it does.
///
/// Only what its row, which is one of these, can vouch for: that it runs under this fence and owner, in
/// this life.
pub(crate) fn keep(
    connection: &Connection,
    now: Timestamp,
    rows: &[i64],
    keep: &KeepStep,
) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(
        "SELECT 1 FROM hapax_claims AS c JOIN hapax_open AS o ON o.row = c.row \
         LEFT JOIN hapax_ends AS e ON e.row = c.row \
         WHERE c.row = ?6 AND c.id = ?1 AND c.fence = ?2 AND c.owner = ?3 AND c.created_at = ?4 \
         AND o.state = ?5 AND c.format = 1 AND e.row IS NULL",
    )?;
    let (id, fence, owner) = (keep.id.as_bytes(), keep.fence.get(), keep.owner.0);
    let (life, running) = (keep.life.as_micros(), StateTag::Running as i16);
    let mut is_running = false;
    for row in rows {
        is_running |= statement.exists(params![id, fence, owner, life, running, row])?;
    }
    if !is_running {
        return Ok(false);
    }
    let row = StepRow::seal(now, keep);
    let mut statement = connection.prepare_cached(
        "INSERT INTO hapax_steps (id, number, life, format, name, version, at, result, digest) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
         ON CONFLICT (id, number) DO UPDATE SET life = excluded.life, format = excluded.format, \
         name = excluded.name, version = excluded.version, at = excluded.at, \
         result = excluded.result, digest = excluded.digest WHERE life <> excluded.life",
    )?;
    statement.execute(params![
        row.id.as_bytes(),
        row.number,
        row.life,
        row.format,
        row.name,
        row.version,
        row.at,
        &*row.result,
        row.digest,
    ])?;
    Ok(true)
}

/// The steps of the life that began then; the inner error is this operation's alone.
pub(crate) fn of(
    connection: &Connection,
    id: OperationId,
    life: i64,
) -> rusqlite::Result<Result<Vec<StoredStep>, StoreError>> {
    let mut statement = connection.prepare_cached(
        "SELECT life, number, format, name, version, at, result, digest FROM hapax_steps \
         WHERE id = ?1 ORDER BY number",
    )?;
    let mut rows = statement.query([id.as_bytes()])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        match columns(row, id) {
            Ok(row) => found.push(row),
            Err(error) => return Ok(Err(StoreError::damaged(error))),
        }
    }
    Ok(open_life(Timestamp::from_micros(life), found).map_err(StoreError::from))
}

/// Removes the steps of an operation.
pub(crate) fn forget(connection: &Connection, id: OperationId) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached("DELETE FROM hapax_steps WHERE id = ?1")?;
    statement.execute([id.as_bytes()])?;
    Ok(())
}

fn columns(row: &rusqlite::Row<'_>, id: OperationId) -> rusqlite::Result<StepRow> {
    Ok(StepRow {
        id,
        life: row.get(0)?,
        number: row.get(1)?,
        format: row.get(2)?,
        name: row.get(3)?,
        version: row.get(4)?,
        at: row.get(5)?,
        result: Bytes::from(row.get::<_, Vec<u8>>(6)?),
        digest: row.get(7)?,
    })
}
