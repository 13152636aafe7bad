use rusqlite::{Connection, ToSql};

use super::{NaturalError, NaturalRow, atomically, sql::Sql};

/// What became of a row that was to move to another state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transition {
    /// It moved: do what belongs to the move now, in the same transaction.
    Moved,
    /// It was there already: a retry, or somebody else was faster.
    AlreadyThere,
    /// It is in a state it may not come from.
    Refused {
        /// The state it is in.
        present: Option<String>,
    },
    /// There is no such row.
    Missing,
}

/// Moves a row from one of these states to another, once.
///
/// *The race:* two callers read `new`, one cancels and one ships. The state is compared and set in
/// one statement, so one of them moves it and the other is told where it is.
///
/// ```
/// use hapax_sqlite::natural::{NaturalRow, Transition, transition};
///
/// # let connection = rusqlite::Connection::open_in_memory()?;
/// # connection.execute_batch("CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT)")?;
/// # connection.execute("INSERT INTO orders VALUES (7, 'cancelled')", [])?;
/// let order = NaturalRow { table: "orders", key: &[("id", &7)] };
/// let shipped = transition(&connection, &order, "state", &["new", "paid"], "shipped")?;
/// assert_eq!(shipped, Transition::Refused { present: Some("cancelled".to_owned()) });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn transition(
    connection: &Connection,
    row: &NaturalRow<'_>,
    field: &str,
    from: &[&str],
    to: &str,
) -> Result<Transition, NaturalError> {
    row.check()?;
    let from: Vec<(&str, &dyn ToSql)> = from.iter().map(|state| (field, state as _)).collect();
    let moved = |sql: &mut Sql<'_>| -> Result<(), NaturalError> { sql.column(field).map(|_| ()) };
    atomically(connection, |connection| {
        let mut sql = Sql::new("UPDATE ");
        sql.name(row.table)?.text(" AS t SET ").name(field)?.text(" = ").value(&to);
        sql.text(" WHERE ");
        row.matches(&mut sql)?;
        sql.text(" AND ").column(field)?.text(" <> ").value(&to);
        sql.text(" AND ").column(field)?.text(" IN (");
        sql.each(&from, ", ", |sql, (_, state)| {
            sql.value(*state);
            Ok(())
        })?;
        sql.text(")");
        if row.touch(connection, &sql)? {
            return Ok(Transition::Moved);
        }
        let present: Option<Option<String>> = row.read(connection, moved)?;
        Ok(match present {
            None => Transition::Missing,
            Some(Some(present)) if present == to => Transition::AlreadyThere,
            Some(present) => Transition::Refused { present },
        })
    })
}
