/// A value that goes to a database. It borrows: a driver copies what it has to.
///
/// ```
/// use hapax_sql::Value;
///
/// let key: Option<&str> = None;
/// let values: [Value<'_>; 3] = [7.into(), "order-17".into(), key.into()];
/// assert_eq!(values[2], Value::Text(None));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number of 64 bits, `int8` in PostgreSQL.
    Number(Option<i64>),
    /// A text.
    Text(Option<&'a str>),
    /// Bytes, `bytea` in PostgreSQL.
    Bytes(Option<&'a [u8]>),
    /// Numbers for one statement about several things: an `int8[]` in PostgreSQL, a JSON array in SQLite.
    Numbers(&'a [i64]),
    /// Texts for one statement about several things: a `text[]` in PostgreSQL, a JSON array in SQLite.
    Texts(&'a [&'a str]),
    /// Bytes, the same way: a `bytea[]`, or a JSON array of texts in hexadecimal digits.
    ManyBytes(&'a [&'a [u8]]),
}

impl From<i16> for Value<'_> {
    fn from(number: i16) -> Self {
        Self::Number(Some(number.into()))
    }
}

impl From<i32> for Value<'_> {
    fn from(number: i32) -> Self {
        Self::Number(Some(number.into()))
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

/// One or zero.
impl From<bool> for Value<'_> {
    fn from(flag: bool) -> Self {
        Self::Number(Some(flag.into()))
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Some(text))
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(Some(bytes))
    }
}

impl<'a, const LEN: usize> From<&'a [u8; LEN]> for Value<'a> {
    fn from(bytes: &'a [u8; LEN]) -> Self {
        Self::Bytes(Some(bytes))
    }
}

impl<'a> From<Option<&'a [u8]>> for Value<'a> {
    fn from(bytes: Option<&'a [u8]>) -> Self {
        Self::Bytes(bytes)
    }
}
