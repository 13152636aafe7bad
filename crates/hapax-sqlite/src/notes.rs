//! What people did to records, as columns.

use hapax_core::{
    Note, Noted, OperationId, StoreError, Timestamp, limits::NOTE_KEPT, note::NoteRow, time::micros,
};
use rusqlite::{Connection, params};

/// Keeps a note.
pub(crate) fn keep(connection: &Connection, now: Timestamp, note: &Note) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO hapax_notes (id, format, at, fence, deed, phase, who, why) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
    )?;
    let row = NoteRow::seal(now, note);
    statement.execute(params![
        row.id.as_bytes(),
        row.format,
        row.at,
        row.fence,
        row.deed,
        row.phase,
        row.who,
        row.why,
    ])?;
    Ok(())
}

/// The latest notes on an operation, oldest first; the inner errors are a note's alone.
pub(crate) fn latest(
    connection: &Connection,
    id: OperationId,
    limit: usize,
) -> rusqlite::Result<Vec<Result<Noted, StoreError>>> {
    let mut statement = connection.prepare_cached(
        "SELECT format, at, fence, deed, phase, who, why FROM hapax_notes WHERE id = ?1 \
         ORDER BY number DESC LIMIT ?2",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let read = |row: &rusqlite::Row<'_>| Ok(columns(row, id));
    let rows = statement.query_map(params![id.as_bytes(), limit], read)?;
    let mut notes: Vec<_> = rows.collect::<Result<_, _>>()?;
    notes.reverse();
    Ok(notes)
}

/// Removes up to `limit` notes that are old enough, the oldest first.
pub(crate) fn forget(
    connection: &Connection,
    now: Timestamp,
    limit: usize,
) -> rusqlite::Result<()> {
    let mut statement = connection.prepare_cached(
        "DELETE FROM hapax_notes WHERE number IN \
         (SELECT number FROM hapax_notes INDEXED BY hapax_notes_at WHERE at <= ?1 ORDER BY at LIMIT ?2)",
    )?;
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    statement.execute(params![now.as_micros().saturating_sub(micros(NOTE_KEPT)), limit])?;
    Ok(())
}

fn columns(row: &rusqlite::Row<'_>, id: OperationId) -> Result<Noted, StoreError> {
    let read = || {
        Ok(NoteRow {
            id,
            format: row.get(0)?,
            at: row.get(1)?,
            fence: row.get(2)?,
            deed: row.get(3)?,
            phase: row.get(4)?,
            who: row.get(5)?,
            why: row.get(6)?,
        })
    };
    let row: rusqlite::Result<NoteRow> = read();
    Ok(row.map_err(StoreError::damaged)?.open()?)
}
