//! Our own books: the payment, its event and the key that stands for both, in one transaction.

use std::fmt;

use deadpool_postgres::Pool;
use hapax::{
    AttemptAnswer, Body, Event, InTransactionError, InvalidName, Key, Operation, Outcome,
    RequestParts, Scope, Tenant, TransactionOptions, Transactional,
    postgres::transaction::deadpool::Database, transactional::WorkError,
};
use hapax_core::{Faults, Injected};
use serde_json::{Value, json};

use crate::order::Order;

/// What keys of this step belong to.
const SCOPE: &str = "payments/record";

/// Why a payment is not in the books, or not known to be. Trying again with the same key tells.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error("the payment was not recorded")]
    Once(#[from] InTransactionError),
    #[error("the scope is not one")]
    Scope(#[from] InvalidName),
    #[error("what is kept of the payment makes no sense")]
    Nonsense(#[source] serde_json::Error),
    #[error("what is kept of the payment is not whole")]
    NotWhole,
    #[error(transparent)]
    Injected(#[from] Injected),
}

/// Why the books could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadError {
    #[error("there is no connection to the database")]
    Connect(#[from] deadpool_postgres::PoolError),
    #[error("the database did not answer")]
    Database(#[from] tokio_postgres::Error),
}

#[derive(Clone)]
pub(crate) struct Books {
    pool: Pool,
    hapax: Transactional<Database>,
    faults: Faults,
}

impl Books {
    pub(crate) fn new(pool: Pool, faults: Faults) -> Self {
        let database = Database::new(pool.clone());
        let hapax = Transactional::new(database, TransactionOptions::default());
        Self { pool, hapax, faults }
    }

    /// Enters a payment once per key, and answers with its number.
    pub(crate) async fn record(
        &self,
        tenant: &Tenant,
        key: Key,
        order: &Order,
        charge: &str,
    ) -> Result<i64, RecordError> {
        let operation = Operation::new(tenant.clone(), Scope::parse(SCOPE)?, key);
        let request = RequestParts { body: charge.as_bytes(), ..RequestParts::default() };
        let entry = (order.clone(), charge.to_owned());
        let faults = self.faults.clone();
        let work = move |tx| enter(tx, entry.clone(), faults.clone());
        let answered = self.hapax.once(operation, &request, work).await?;
        self.faults.at("record.committed")?;
        let Body::Kept(number) = answered.outcome.body() else { return Err(RecordError::NotWhole) };
        serde_json::from_slice(number).map_err(RecordError::Nonsense)
    }

    /// Everything that is in the books, oldest first.
    pub(crate) async fn all(&self) -> Result<Vec<Value>, ReadError> {
        let text = "SELECT id, order_id, charge, cents FROM payments ORDER BY id";
        let rows = self.pool.get().await?.query(text, &[]).await?;
        let entry = |row: tokio_postgres::Row| {
            let (order, charge): (String, String) = (row.try_get(1)?, row.try_get(2)?);
            let (id, cents): (i64, i64) = (row.try_get(0)?, row.try_get(3)?);
            Ok(json!({ "payment": id, "order": order, "charge": charge, "cents": cents }))
        };
        rows.into_iter().map(entry).collect()
    }
}

type Tx = hapax::transactional::Tx<<Database as hapax::Database>::Transaction>;

/// The work inside the transaction; called again from its beginning if another one was in the way.
async fn enter(
    mut tx: Tx,
    (order, charge): (Order, String),
    faults: Faults,
) -> Result<AttemptAnswer, WorkError> {
    faults.at("record.begun")?;
    let Order { order, cents, .. } = order;
    let insert = "INSERT INTO payments (order_id, charge, cents) VALUES ($1, $2, $3) RETURNING id";
    let cents = i64::from(cents.get());
    let payment: i64 =
        tx.query_one(insert, &[&order.as_str(), &charge, &cents]).await?.try_get(0)?;
    let completed = json!({ "payment": payment, "order": order, "cents": cents });
    tx.emit(Event::new("payment.completed", order.as_str(), completed.to_string())?);
    faults.at("record.entered")?;
    let outcome = Outcome::new(201, Vec::new(), Body::Kept(payment.to_string().into()))?;
    Ok(AttemptAnswer::completed(outcome))
}

impl fmt::Debug for Books {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Books").finish_non_exhaustive()
    }
}
