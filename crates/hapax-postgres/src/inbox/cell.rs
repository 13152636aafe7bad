//! Values, in the three types that the statements of this module use.

use crate::transaction::error::TransactionFault;

/// A value that goes to the server or comes from it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Number(Option<i64>),
    Text(Option<String>),
    Bytes(Option<Vec<u8>>),
}

impl From<i32> for Cell {
    fn from(number: i32) -> Self {
        i64::from(number).into()
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Self::Number(Some(number))
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(Some(text.to_owned()))
    }
}

impl From<&[u8]> for Cell {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(Some(bytes.to_vec()))
    }
}

/// A row that came from the server.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cells(pub(crate) Vec<Cell>);

impl Cells {
    pub(crate) fn number(&self, at: usize) -> Result<i64, TransactionFault> {
        self.maybe_number(at)?.ok_or_else(|| unexpected(at))
    }

    pub(crate) fn maybe_number(&self, at: usize) -> Result<Option<i64>, TransactionFault> {
        match self.0.get(at) {
            Some(Cell::Number(number)) => Ok(*number),
            Some(Cell::Text(_) | Cell::Bytes(_)) | None => Err(unexpected(at)),
        }
    }

    pub(crate) fn text(&self, at: usize) -> Result<String, TransactionFault> {
        self.maybe_text(at)?.ok_or_else(|| unexpected(at))
    }

    pub(crate) fn maybe_text(&self, at: usize) -> Result<Option<String>, TransactionFault> {
        match self.0.get(at) {
            Some(Cell::Text(text)) => Ok(text.clone()),
            Some(Cell::Number(_) | Cell::Bytes(_)) | None => Err(unexpected(at)),
        }
    }

    pub(crate) fn bytes(&self, at: usize) -> Result<Vec<u8>, TransactionFault> {
        self.maybe_bytes(at)?.ok_or_else(|| unexpected(at))
    }

    pub(crate) fn maybe_bytes(&self, at: usize) -> Result<Option<Vec<u8>>, TransactionFault> {
        match self.0.get(at) {
            Some(Cell::Bytes(bytes)) => Ok(bytes.clone()),
            Some(Cell::Number(_) | Cell::Text(_)) | None => Err(unexpected(at)),
        }
    }
}

fn unexpected(at: usize) -> TransactionFault {
    TransactionFault::unanswered(format!("column {at} is not what was asked for"))
}
