//! What is said through `rusqlite`, and what comes back; and what both drivers of SQLite share.

use std::error::Error;

use hapax_sql::{ResultRow, Session, TextOrBytes, TransactionFault, Value};
use rusqlite::{
    Connection, ToSql,
    types::{ToSqlOutput, ValueRef},
};
use serde_json::json;

/// The primary result codes of SQLite that mean a decision.
mod code {
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CONSTRAINT: i32 = 19;
    pub(super) const NOT_A_DATABASE: i32 = 26;
}

/// Whether this code, extended or not, says that somebody else had the lock for too long.
pub(crate) fn is_lock(code: i32) -> bool {
    matches!(code & 0xff, code::BUSY | code::LOCKED)
}

/// The fault behind an error of a driver, to which SQLite gave this code, extended or not.
///
/// A full disk or a constraint leaves the transaction open, to be rolled back. After anything else that
/// happens to a commit, its mark may be in the log.
pub(crate) fn fault_of(
    code: Option<i32>,
    error: impl Into<Box<dyn Error + Send + Sync>>,
) -> TransactionFault {
    match code.map(|code| code & 0xff) {
        Some(code) if is_lock(code) => TransactionFault::conflict(error),
        Some(code::CORRUPT | code::NOT_A_DATABASE) => TransactionFault::damaged(error),
        Some(code @ (code::FULL | code::CONSTRAINT)) => {
            TransactionFault::refused(code.to_string(), error)
        }
        Some(_) | None => TransactionFault::unanswered(error),
    }
}

/// The fault behind an error of `rusqlite`.
pub(crate) fn fault(error: rusqlite::Error) -> TransactionFault {
    fault_of(error.sqlite_error().map(|error| error.extended_code), error)
}

/// Several texts as one: SQLite has no lists.
pub(crate) fn json_texts(texts: &[&str]) -> String {
    json!(texts).to_string()
}

/// The same for numbers.
pub(crate) fn json_numbers(numbers: &[i64]) -> String {
    json!(numbers).to_string()
}

/// The same for bytes, in hexadecimal digits.
pub(crate) fn json_bytes(many: &[&[u8]]) -> String {
    let hex = |bytes: &&[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    json!(many.iter().map(hex).collect::<Vec<_>>()).to_string()
}

/// A connection that is lent to a conversation whose answers are there at once: see [`ready`](crate::log::ready).
pub(crate) struct LentConnection<'c>(pub(crate) &'c Connection);

impl Session for LentConnection<'_> {
    type Row = CopiedRow;

    async fn ask(
        &mut self,
        text: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<CopiedRow>, TransactionFault> {
        query(self.0, text, values).map_err(fault)
    }
}

/// Runs one statement, which is kept prepared.
pub(crate) fn query(
    connection: &Connection,
    text: &str,
    values: &[Value<'_>],
) -> rusqlite::Result<Vec<CopiedRow>> {
    let mut statement = connection.prepare_cached(text)?;
    let columns = statement.column_count();
    let params = rusqlite::params_from_iter(values.iter().map(Param));
    let rows = statement.query_map(params, |row| {
        let copied = (0..columns).map(|at| row.get_ref(at).map(CopiedValue::from));
        copied.collect::<rusqlite::Result<_>>().map(KindRow)
    })?;
    rows.collect()
}

struct Param<'a>(&'a Value<'a>);

impl ToSql for Param<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        let borrowed = ToSqlOutput::Borrowed;
        Ok(match *self.0 {
            Value::Number(Some(number)) => borrowed(ValueRef::Integer(number)),
            Value::Text(Some(text)) => borrowed(ValueRef::Text(text.as_bytes())),
            Value::Bytes(Some(bytes)) => borrowed(ValueRef::Blob(bytes)),
            Value::Number(None) | Value::Text(None) | Value::Bytes(None) => {
                borrowed(ValueRef::Null)
            }
            Value::Numbers(numbers) => ToSqlOutput::Owned(json_numbers(numbers).into()),
            Value::Texts(texts) => ToSqlOutput::Owned(json_texts(texts).into()),
            Value::ManyBytes(many) => ToSqlOutput::Owned(json_bytes(many).into()),
        })
    }
}

/// A row of `rusqlite`, which has a kind for each value: lent until the next step, or copied.
pub(crate) struct KindRow<R>(pub(crate) R);

/// A row that was copied, to be kept longer.
pub(crate) type CopiedRow = KindRow<Vec<CopiedValue>>;

/// Whatever has values in columns.
trait Columns {
    fn value(&self, at: usize) -> Option<ValueRef<'_>>;
}

impl Columns for &rusqlite::Row<'_> {
    #[inline]
    fn value(&self, at: usize) -> Option<ValueRef<'_>> {
        self.get_ref(at).ok()
    }
}

impl Columns for Vec<CopiedValue> {
    fn value(&self, at: usize) -> Option<ValueRef<'_>> {
        Some(match self.get(at)? {
            CopiedValue::Null => ValueRef::Null,
            CopiedValue::Number(number) => ValueRef::Integer(*number),
            CopiedValue::Real(real) => ValueRef::Real(*real),
            CopiedValue::Text(text) => ValueRef::Text(text),
            CopiedValue::Bytes(bytes) => ValueRef::Blob(bytes),
        })
    }
}

impl<R: Columns> ResultRow for KindRow<R> {
    #[inline]
    fn maybe_number(&self, at: usize) -> Result<Option<i64>, TransactionFault> {
        match self.0.value(at) {
            Some(ValueRef::Integer(number)) => Ok(Some(number)),
            Some(ValueRef::Null) => Ok(None),
            Some(_) | None => Err(TransactionFault::unexpected(at)),
        }
    }

    #[inline]
    fn maybe_text(&self, at: usize) -> Result<Option<&str>, TransactionFault> {
        match self.0.value(at) {
            Some(ValueRef::Text(text)) => {
                str::from_utf8(text).map(Some).map_err(TransactionFault::damaged)
            }
            Some(ValueRef::Null) => Ok(None),
            Some(_) | None => Err(TransactionFault::unexpected(at)),
        }
    }

    #[inline]
    fn maybe_bytes(&self, at: usize) -> Result<Option<&[u8]>, TransactionFault> {
        match self.0.value(at) {
            Some(ValueRef::Blob(bytes)) => Ok(Some(bytes)),
            Some(ValueRef::Null) => Ok(None),
            Some(_) | None => Err(TransactionFault::unexpected(at)),
        }
    }

    #[inline]
    fn text_or_bytes(&self, at: usize) -> Result<TextOrBytes<'_>, TransactionFault> {
        match self.0.value(at) {
            Some(ValueRef::Blob(bytes)) => Ok(TextOrBytes::Bytes(bytes)),
            Some(_) | None => self.text(at).map(TextOrBytes::Text),
        }
    }
}

pub(crate) enum CopiedValue {
    Null,
    Number(i64),
    Real(f64),
    Text(Vec<u8>),
    Bytes(Vec<u8>),
}

impl From<ValueRef<'_>> for CopiedValue {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Number(number),
            ValueRef::Real(real) => Self::Real(real),
            ValueRef::Text(text) => Self::Text(text.to_vec()),
            ValueRef::Blob(bytes) => Self::Bytes(bytes.to_vec()),
        }
    }
}
