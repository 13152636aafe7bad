use rusqlite::Connection;

use super::{Field, NaturalError, NaturalRow, atomically, sql::Sql};

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
///
/// ```
/// use hapax_sqlite::natural::{NaturalRow, Versioned, update_versioned};
///
/// # let connection = rusqlite::Connection::open_in_memory()?;
/// # connection.execute_batch("CREATE TABLE pages (id INTEGER PRIMARY KEY, text TEXT, v INT)")?;
/// # connection.execute("INSERT INTO pages VALUES (7, 'old', 1)", [])?;
/// let page = NaturalRow { table: "pages", key: &[("id", &7)] };
/// let save = |text: &str| update_versioned(&connection, &page, &[("text", &text)], "v", 1);
/// assert_eq!(save("mine")?, Versioned::Updated { version: 2 });
/// assert_eq!(save("yours")?, Versioned::Stale { present: 2 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn update_versioned(
    connection: &Connection,
    row: &NaturalRow<'_>,
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
