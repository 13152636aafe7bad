//! What people did to records, as columns.

use hapax_core::{
    Note, Noted, OperationId, StoreError, Timestamp,
    limits::{NOTE_KEPT, PAGE_RECORDS_MAX},
    note::NoteRow,
    time::micros,
};
use tokio_postgres::Row;

use crate::{
    connection::SharedConnection,
    error::{StatementFailure, after, before, reading},
    row::{Id, column},
    store::Shared,
};

const NOTE: &str = include_str!("sql/note.sql");
const NOTES: &str = include_str!("sql/notes.sql");
const FORGET: &str = include_str!("sql/forget_notes.sql");

/// Keeps a note, in a commit of its own.
pub(crate) async fn note(shared: &Shared, note: &Note) -> Result<(), StatementFailure> {
    let lane = shared.lane();
    let wire = lane.wire().await?;
    // The server's clock says when.
    let row = NoteRow::seal(Timestamp::ZERO, note);
    shared.faults.at("commit.send").map_err(before)?;
    let warnings = wire.warnings();
    let params: [&(dyn tokio_postgres::types::ToSql + Sync); 7] =
        [&Id(row.id), &row.format, &row.fence, &row.deed, &row.phase, &row.who, &row.why];
    wire.query(NOTE, &params).await?;
    shared.faults.at("commit.answer").map_err(after)?;
    if wire.warnings() == warnings {
        Ok(())
    } else {
        Err(StatementFailure::unanswered("the server warned while it committed"))
    }
}

/// The latest notes on an operation, oldest first.
pub(crate) async fn notes(
    shared: &Shared,
    id: OperationId,
    limit: usize,
) -> Result<Vec<Noted>, StoreError> {
    let rows = rows(shared, id, limit).await.map_err(reading)?;
    rows.into_iter().map(|row| Ok(row.open()?)).collect()
}

/// Removes up to `limit` notes that are old enough, the oldest first.
pub(crate) async fn forget(wire: &SharedConnection, limit: usize) -> Result<(), StatementFailure> {
    let limit = i64::try_from(limit).unwrap_or(0);
    wire.query(FORGET, &[&micros(NOTE_KEPT), &limit]).await?;
    Ok(())
}

async fn rows(
    shared: &Shared,
    id: OperationId,
    limit: usize,
) -> Result<Vec<NoteRow>, StatementFailure> {
    let wire = shared.keeper.wire().await?;
    let limit = i64::try_from(limit.min(PAGE_RECORDS_MAX)).unwrap_or(0);
    let rows = wire.query(NOTES, &[&Id(id), &limit]).await?;
    rows.iter().map(|row| columns(row, id)).collect()
}

fn columns(row: &Row, id: OperationId) -> Result<NoteRow, StatementFailure> {
    Ok(NoteRow {
        id,
        format: column(row, 0)?,
        at: column(row, 1)?,
        fence: column(row, 2)?,
        deed: column(row, 3)?,
        phase: column(row, 4)?,
        who: column(row, 5)?,
        why: column(row, 6)?,
    })
}
