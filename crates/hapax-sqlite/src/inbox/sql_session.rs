//! What both drivers can say to the database.

use hapax_core::TransactionError;

use super::cell::{Cell, Cells};

/// A connection: a statement goes in, rows come out.
pub(crate) trait SqlSession: Send {
    /// Runs one statement.
    fn ask(
        &mut self,
        text: &'static str,
        values: &[Cell],
    ) -> impl Future<Output = Result<Vec<Cells>, TransactionError>> + Send;
}
