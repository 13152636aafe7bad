use crate::TransactionFault;

/// A row that came from a database. Columns are numbered from zero, and lent, not copied.
///
/// A driver says what three kinds of columns hold; the rest follows. A column of another kind is
/// refused, and so is `NULL` where it was not asked for: whatever is stored there, we did not write it.
pub trait ResultRow {
    /// A whole number of any width, or a truth value as one or zero.
    fn maybe_number(&self, at: usize) -> Result<Option<i64>, TransactionFault>;

    /// A text.
    fn maybe_text(&self, at: usize) -> Result<Option<&str>, TransactionFault>;

    /// Bytes.
    fn maybe_bytes(&self, at: usize) -> Result<Option<&[u8]>, TransactionFault>;

    /// A whole number that is there.
    fn number(&self, at: usize) -> Result<i64, TransactionFault> {
        self.maybe_number(at)?.ok_or_else(|| TransactionFault::unexpected(at))
    }

    /// A whole number that is there and fits into 16 bits.
    fn small(&self, at: usize) -> Result<i16, TransactionFault> {
        i16::try_from(self.number(at)?).map_err(|_| TransactionFault::unexpected(at))
    }

    /// Whether the number that is there is one. Anything but one and zero is refused.
    fn flag(&self, at: usize) -> Result<bool, TransactionFault> {
        match self.number(at)? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(TransactionFault::unexpected(at)),
        }
    }

    /// A text that is there.
    fn text(&self, at: usize) -> Result<&str, TransactionFault> {
        self.maybe_text(at)?.ok_or_else(|| TransactionFault::unexpected(at))
    }

    /// Bytes that are there.
    fn bytes(&self, at: usize) -> Result<&[u8], TransactionFault> {
        self.maybe_bytes(at)?.ok_or_else(|| TransactionFault::unexpected(at))
    }

    /// Whichever of the two is there.
    fn text_or_bytes(&self, at: usize) -> Result<TextOrBytes<'_>, TransactionFault> {
        match self.maybe_text(at) {
            Ok(Some(text)) => Ok(TextOrBytes::Text(text)),
            Ok(None) | Err(_) => self.bytes(at).map(TextOrBytes::Bytes),
        }
    }
}

/// What a column holds whose values are of two kinds, as only SQLite has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextOrBytes<'a> {
    /// A text.
    Text(&'a str),
    /// Bytes.
    Bytes(&'a [u8]),
}
