//! What is said through `tokio-postgres`, and what comes back.

use std::sync::Arc;

use hapax_sql::{Session, TransactionFault, Value};
use tokio_postgres::{Row, types::ToSql};

use crate::{connection::SharedConnection, error::StatementFailure, row::TokioRow};

/// A connection of a store that is lent to a conversation without a transaction: others speak on it
/// between its statements.
pub(crate) struct StoreSession(pub(crate) Arc<SharedConnection>);

impl Session for StoreSession {
    type Row = TokioRow<Row>;

    async fn ask(
        &mut self,
        text: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<TokioRow<Row>>, TransactionFault> {
        let rows = self.0.query(text, &params(values)).await.map_err(fault)?;
        Ok(rows.into_iter().map(TokioRow).collect())
    }
}

/// What the server could not be told did not happen, whatever the conversation was about.
fn fault(failure: StatementFailure) -> TransactionFault {
    match failure {
        StatementFailure::NotSent(cause) => TransactionFault::Conflict(cause),
        StatementFailure::Refused(error) => {
            let code = error.code().map_or_else(String::new, |code| code.code().to_owned());
            TransactionFault::Refused { code, cause: error }
        }
        StatementFailure::Unanswered(cause) => TransactionFault::Unanswered(cause),
    }
}

/// Values as the driver takes them.
pub(crate) fn params<'a>(values: &'a [Value<'_>]) -> Vec<&'a (dyn ToSql + Sync)> {
    values.iter().map(param).collect()
}

fn param<'a>(value: &'a Value<'_>) -> &'a (dyn ToSql + Sync) {
    match value {
        Value::Number(number) => number,
        Value::Text(text) => text,
        Value::Bytes(bytes) => bytes,
        Value::Numbers(numbers) => numbers,
        Value::Texts(texts) => texts,
        Value::ManyBytes(many) => many,
    }
}
