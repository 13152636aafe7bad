//! A statement in the making: names are quoted, values are parameters.

use rusqlite::{Connection, OptionalExtension, ToSql, types::FromSql};

use super::{Field, NaturalError};

pub(super) struct Sql<'a> {
    text: String,
    values: Vec<&'a dyn ToSql>,
}

impl<'a> Sql<'a> {
    pub(super) fn new(text: &str) -> Self {
        Self { text: text.to_owned(), values: Vec::new() }
    }

    pub(super) fn text(&mut self, text: &'static str) -> &mut Self {
        self.text.push_str(text);
        self
    }

    pub(super) fn name(&mut self, name: &str) -> Result<&mut Self, NaturalError> {
        if name.is_empty() || name.contains('\0') {
            return Err(NaturalError::argument(format!("{name:?} is no name")));
        }
        self.text.push('"');
        self.text.push_str(&name.replace('"', "\"\""));
        self.text.push('"');
        Ok(self)
    }

    /// A column of the table `t`.
    pub(super) fn column(&mut self, name: &str) -> Result<&mut Self, NaturalError> {
        self.text("t.").name(name)
    }

    pub(super) fn value(&mut self, value: &'a dyn ToSql) -> &mut Self {
        self.values.push(value);
        self.text.push('?');
        self.text.push_str(&self.values.len().to_string());
        self
    }

    /// Every field as `write` says it, with a separator between them.
    pub(super) fn each(
        &mut self,
        fields: &[Field<'a>],
        separator: &'static str,
        write: impl Fn(&mut Self, &Field<'a>) -> Result<(), NaturalError>,
    ) -> Result<(), NaturalError> {
        for (at, field) in fields.iter().enumerate() {
            if at > 0 {
                self.text(separator);
            }
            write(self, field)?;
        }
        Ok(())
    }

    /// `"a" = ?1, "b" = ?2`.
    pub(super) fn assignments(&mut self, fields: &[Field<'a>]) -> Result<(), NaturalError> {
        self.each(fields, ", ", |sql, (column, value)| {
            sql.name(column)?.text(" = ").value(*value);
            Ok(())
        })
    }

    /// Whether the row of `t` holds these already; NULL is a value like another.
    pub(super) fn same(&mut self, fields: &[Field<'a>]) -> Result<(), NaturalError> {
        self.text("(true");
        for (column, value) in fields {
            self.text(" AND ").column(column)?.text(" IS ").value(*value);
        }
        self.text(")");
        Ok(())
    }

    /// `INSERT` of a key and fields, doing nothing if the key is taken.
    pub(super) fn insert(
        table: &str,
        key: &[Field<'a>],
        fields: &[Field<'a>],
    ) -> Result<Self, NaturalError> {
        let (all, mut sql) = ([key, fields].concat(), Self::new("INSERT INTO "));
        let name = |sql: &mut Self, (column, _): &Field<'a>| sql.name(column).map(|_| ());
        sql.name(table)?.text(" (");
        sql.each(&all, ", ", name)?;
        sql.text(") VALUES (");
        sql.each(&all, ", ", |sql, (_, value)| {
            sql.value(*value);
            Ok(())
        })?;
        sql.text(") ON CONFLICT (");
        sql.each(key, ", ", name)?;
        sql.text(") DO NOTHING");
        Ok(sql)
    }

    pub(super) fn execute(&self, connection: &Connection) -> rusqlite::Result<usize> {
        connection.prepare_cached(&self.text)?.execute(&*self.values)
    }

    pub(super) fn read<T: FromSql>(
        &self,
        connection: &Connection,
    ) -> Result<Option<T>, NaturalError> {
        let mut statement = connection.prepare_cached(&self.text)?;
        Ok(statement.query_row(&*self.values, |row| row.get(0)).optional()?)
    }
}
