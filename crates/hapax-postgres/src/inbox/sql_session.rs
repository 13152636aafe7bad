//! What both drivers can say to the server.

use super::cell::{Cell, Cells};
use crate::transaction::error::TransactionFault;

/// A connection: a statement goes out, rows come back.
pub(crate) trait SqlSession: Send {
    /// Runs one statement. Numbers are `int8`, texts `text`, bytes `bytea`, both ways.
    fn ask(
        &mut self,
        text: &'static str,
        values: &[Cell],
    ) -> impl Future<Output = Result<Vec<Cells>, TransactionFault>> + Send;
}
