//! Values, in the types that the statements of this module use.

use hapax_core::StoreError;

/// A value that goes to the database or comes from it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Cell {
    Number(i64),
    Text(String),
    Bytes(Vec<u8>),
    Null,
}

impl From<i32> for Cell {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

impl From<i64> for Cell {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Option<&str>> for Cell {
    fn from(text: Option<&str>) -> Self {
        text.map_or(Self::Null, Self::from)
    }
}

impl From<&[u8]> for Cell {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_vec())
    }
}

/// A row that came from the database.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cells(pub(crate) Vec<Cell>);

impl Cells {
    pub(crate) fn number(&self, at: usize) -> Result<i64, StoreError> {
        self.maybe_number(at)?.ok_or_else(|| unexpected(at))
    }

    pub(crate) fn maybe_number(&self, at: usize) -> Result<Option<i64>, StoreError> {
        match self.0.get(at) {
            Some(Cell::Number(number)) => Ok(Some(*number)),
            Some(Cell::Null) => Ok(None),
            Some(Cell::Text(_) | Cell::Bytes(_)) | None => Err(unexpected(at)),
        }
    }

    pub(crate) fn text(&self, at: usize) -> Result<String, StoreError> {
        self.maybe_text(at)?.ok_or_else(|| unexpected(at))
    }

    pub(crate) fn maybe_text(&self, at: usize) -> Result<Option<String>, StoreError> {
        match self.0.get(at) {
            Some(Cell::Text(text)) => Ok(Some(text.clone())),
            Some(Cell::Null) => Ok(None),
            Some(Cell::Number(_) | Cell::Bytes(_)) | None => Err(unexpected(at)),
        }
    }

    pub(crate) fn bytes(&self, at: usize) -> Result<Vec<u8>, StoreError> {
        match self.0.get(at) {
            Some(Cell::Bytes(bytes)) => Ok(bytes.clone()),
            Some(Cell::Number(_) | Cell::Text(_) | Cell::Null) | None => Err(unexpected(at)),
        }
    }
}

fn unexpected(at: usize) -> StoreError {
    StoreError::damaged(format!("column {at} is not what was written"))
}
