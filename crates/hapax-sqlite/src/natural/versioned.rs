use rusqlite::Connection;

use super::{Field, NaturalError, Row, atomically, sql::Sql};

/// What became of a change to what had been read before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versioned {
    /// It was made.
    Updated {
        /// The version it has now.
        version: i64,
    },
    /// Somebody changed the row meanwhile; or this is a retry, and the first attempt did.
    Stale {
        /// The version it has.
        present: i64,
    },
    /// There is no such row.
    Missing,
}

/// Changes a row only if its version is still the one that was read, and raises it by one.
///
/// *The race:* two people open the same form, and the second to save undoes what the first one
/// wrote.
pub fn update_versioned(
    connection: &Connection,
    row: &Row<'_>,
    fields: &[Field<'_>],
    version: &str,
    expected: i64,
) -> Result<Versioned, NaturalError> {
    row.check()?;
    if fields.is_empty() || fields.iter().any(|(column, _)| *column == version) {
        let what = "give fields to change, the version not among them: it is raised by one";
        return Err(NaturalError::argument(what));
    }
    atomically(connection, |connection| {
        let mut sql = Sql::new("UPDATE ");
        sql.name(row.table)?.text(" AS t SET ");
        sql.assignments(fields)?;
        sql.text(", ").name(version)?.text(" = ").column(version)?.text(" + 1 WHERE ");
        row.matches(&mut sql)?;
        sql.text(" AND ").column(version)?.text(" = ").value(&expected);
        if row.touch(connection, &sql)? {
            return Ok(Versioned::Updated { version: expected.saturating_add(1) });
        }
        let present = row.read(connection, |sql| sql.column(version).map(|_| ()))?;
        Ok(present.map_or(Versioned::Missing, |present| Versioned::Stale { present }))
    })
}
