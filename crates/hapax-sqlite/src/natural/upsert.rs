use rusqlite::Connection;

use super::{Field, NaturalError, NaturalRow, atomically, sql::Sql};

/// What it took to make a row be as given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Upserted {
    /// There was none.
    Inserted,
    /// There was another one.
    Updated,
    /// It was so already: nothing was written.
    Unchanged,
    /// Another one is there that is as new: nothing was written.
    Stale,
}

/// Makes a row be as given, and tells what that took.
///
/// *The race:* two callers find no row and both insert; or the older of two messages arrives last
/// and wins. `newer` names a field that grows, such as a version or a time: the row is changed only
/// if the given one is greater.
///
/// ```
/// use hapax_sqlite::natural::{NaturalRow, Upserted, upsert};
///
/// # let connection = rusqlite::Connection::open_in_memory()?;
/// # connection.execute_batch("CREATE TABLE stock (item TEXT PRIMARY KEY, count INT, at INT)")?;
/// let apples = NaturalRow { table: "stock", key: &[("item", &"apples")] };
/// let count = |count: i64, at: i64| {
///     upsert(&connection, &apples, &[("count", &count), ("at", &at)], Some("at"))
/// };
/// assert_eq!(count(5, 2)?, Upserted::Inserted);
/// assert_eq!(count(9, 1)?, Upserted::Stale, "the older message came last");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn upsert(
    connection: &Connection,
    row: &NaturalRow<'_>,
    fields: &[Field<'_>],
    newer: Option<&str>,
) -> Result<Upserted, NaturalError> {
    row.check()?;
    let newer = newer.map(|column| {
        let given = fields.iter().find(|(name, _)| *name == column);
        given.ok_or_else(|| NaturalError::argument(format!("{column} is not among the fields")))
    });
    let newer = newer.transpose()?;
    atomically(connection, |connection| {
        if row.touch(connection, &Sql::insert(row.table, row.key, fields)?)? {
            return Ok(Upserted::Inserted);
        }
        if !fields.is_empty() {
            let mut sql = Sql::new("UPDATE ");
            sql.name(row.table)?.text(" AS t SET ");
            sql.assignments(fields)?;
            sql.text(" WHERE ");
            row.matches(&mut sql)?;
            sql.text(" AND NOT ");
            sql.same(fields)?;
            if let Some((column, value)) = newer {
                sql.text(" AND (").column(column)?.text(" IS NULL OR ").column(column)?;
                sql.text(" < ").value(*value).text(")");
            }
            if row.touch(connection, &sql)? {
                return Ok(Upserted::Updated);
            }
        }
        match row.read(connection, |sql| sql.same(fields))? {
            Some(true) => Ok(Upserted::Unchanged),
            Some(false) => Ok(Upserted::Stale),
            None => Err(NaturalError::NotOneRow { table: row.table.to_owned(), rows: 0 }),
        }
    })
}
