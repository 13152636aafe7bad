use crate::{ResultRow, TransactionFault, Value};

/// A connection to a database: statements go out, rows come back.
///
/// Implemented by each driver. None of its calls is dropped half-way, and after a fault the
/// transaction they were in is rolled back by whoever has it. Whether a conversation can move between threads
/// depends on its driver, so nothing here asks for it.
pub trait Session {
    /// A row as the driver has it.
    type Row: ResultRow;

    /// Runs one statement. Its text never changes, so a driver may keep it prepared.
    fn ask(
        &mut self,
        text: &'static str,
        values: &[Value<'_>],
    ) -> impl Future<Output = Result<Vec<Self::Row>, TransactionFault>>;

    /// Runs these statements in their order, and answers with the rows of each; the fault is that of
    /// the first that failed.
    ///
    /// A driver that can sends them all before it waits. Those behind the one that failed may then have
    /// reached the database, too: inside a transaction it refuses them, and a `COMMIT` among them rolls
    /// back. So a fault of statements that end with `COMMIT` means what
    /// [`of_commit`](TransactionFault::of_commit) says, and a `COMMIT` must not go with statements whose
    /// rows decide whether it is wanted.
    fn ask_all(
        &mut self,
        statements: &[Statement<'_>],
    ) -> impl Future<Output = Result<Vec<Vec<Self::Row>>, TransactionFault>> {
        async move {
            let mut answers = Vec::with_capacity(statements.len());
            for Statement { text, values } in statements {
                answers.push(self.ask(text, values).await?);
            }
            Ok(answers)
        }
    }
}

/// A statement and its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Statement<'a> {
    /// What it says.
    pub text: &'static str,
    /// In the order of its parameters.
    pub values: &'a [Value<'a>],
}

impl Statement<'static> {
    /// A statement without values, such as `BEGIN`.
    pub const fn plain(text: &'static str) -> Self {
        Self { text, values: &[] }
    }
}
