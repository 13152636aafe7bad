//! What is said on a connection of the pool, and what comes back.

use futures_util::future::join_all;
use hapax_sql::{Session, Statement, TransactionFault, Value};
use tokio_postgres::Row;

use super::pooled_connection::PooledConnection;
use crate::{row::TokioRow, session::params, transaction::error::fault_of};

impl Session for PooledConnection {
    type Row = TokioRow<Row>;

    async fn ask(
        &mut self,
        text: &'static str,
        values: &[Value<'_>],
    ) -> Result<Vec<TokioRow<Row>>, TransactionFault> {
        let statement = self.0.prepare_cached(text).await.map_err(fault)?;
        let rows = self.0.query(&statement, &params(values)).await.map_err(fault)?;
        Ok(rows.into_iter().map(TokioRow).collect())
    }

    /// All of them in one round trip, once they are prepared. What has no values begins or ends a
    /// transaction, and is not worth preparing.
    async fn ask_all(
        &mut self,
        statements: &[Statement<'_>],
    ) -> Result<Vec<Vec<TokioRow<Row>>>, TransactionFault> {
        let mut prepared = Vec::with_capacity(statements.len());
        for Statement { text, values } in statements {
            let statement = match values {
                [] => None,
                _ => Some(self.0.prepare_cached(text).await.map_err(fault)?),
            };
            prepared.push((statement, *text, params(values)));
        }
        let client = &self.0;
        let asked = prepared.iter().map(|(statement, text, params)| async move {
            match statement {
                Some(statement) => client.query(statement, params).await,
                None => client.batch_execute(text).await.map(|()| Vec::new()),
            }
        });
        let answers = join_all(asked).await.into_iter();
        let rows = |rows: Vec<Row>| rows.into_iter().map(TokioRow).collect();
        answers.map(|answer| answer.map(rows).map_err(fault)).collect()
    }
}

pub(crate) fn fault(error: tokio_postgres::Error) -> TransactionFault {
    let code = error.code().map(|code| code.code().to_owned());
    fault_of(code.as_deref(), error)
}
