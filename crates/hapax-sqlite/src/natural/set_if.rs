use rusqlite::{Connection, ToSql, types::Value};

use super::{NaturalError, NaturalRow, atomically, sql::Sql};

/// What became of a value that was to be set.
#[derive(Debug, Clone, PartialEq)]
pub enum SetIf {
    /// It was set.
    Set,
    /// It had the wanted value already.
    AlreadySet,
    /// Somebody set it to something third.
    Changed {
        /// What it is.
        present: Value,
    },
    /// There is no such row.
    Missing,
}

/// Sets a field if it still has the expected value; NULL is a value like another.
///
/// *The race:* a value is set while somebody else sets it to something third, and one of the two is
/// lost without a word. Use it for values that are known (an address, a limit). One that was
/// computed from what was read (a balance, a count) needs [`update_versioned`] or [`post`].
///
/// ```
/// use hapax_sqlite::natural::{NaturalRow, SetIf, set_if};
///
/// # let connection = rusqlite::Connection::open_in_memory()?;
/// # connection.execute_batch("CREATE TABLE users (id INTEGER PRIMARY KEY, city TEXT)")?;
/// # connection.execute("INSERT INTO users VALUES (7, 'Ulm')", [])?;
/// let user = NaturalRow { table: "users", key: &[("id", &7)] };
/// assert_eq!(set_if(&connection, &user, "city", &"Ulm", &"Bonn")?, SetIf::Set);
/// assert_eq!(set_if(&connection, &user, "city", &"Ulm", &"Bonn")?, SetIf::AlreadySet);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`update_versioned`]: super::update_versioned
/// [`post`]: super::post
pub fn set_if(
    connection: &Connection,
    row: &NaturalRow<'_>,
    field: &str,
    expected: &dyn ToSql,
    wanted: &dyn ToSql,
) -> Result<SetIf, NaturalError> {
    row.check()?;
    atomically(connection, |connection| {
        let mut sql = Sql::new("UPDATE ");
        sql.name(row.table)?.text(" AS t SET ").name(field)?.text(" = ").value(wanted);
        sql.text(" WHERE ");
        row.matches(&mut sql)?;
        sql.text(" AND ").column(field)?.text(" IS ").value(expected);
        sql.text(" AND ").column(field)?.text(" IS NOT ").value(wanted);
        if row.touch(connection, &sql)? {
            return Ok(SetIf::Set);
        }
        let is_wanted = row.read(connection, |sql| {
            sql.column(field)?.text(" IS ").value(wanted);
            Ok(())
        })?;
        Ok(match is_wanted {
            None => SetIf::Missing,
            Some(true) => SetIf::AlreadySet,
            Some(false) => {
                let present = row.read(connection, |sql| sql.column(field).map(|_| ()))?;
                SetIf::Changed { present: present.unwrap_or(Value::Null) }
            }
        })
    })
}
