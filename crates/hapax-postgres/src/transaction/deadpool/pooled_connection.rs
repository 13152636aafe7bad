//! One connection of the pool.

use std::time::Duration;

use deadpool_postgres::Object;
use hapax_core::{StoreError, TransactionError};
use tokio::time::timeout;

use crate::{
    OpenError,
    transaction::{SCHEMA, unit::KnownSchema},
};

/// How long a rollback may take before its connection is closed instead.
const ROLL_BACK_MAX: Duration = Duration::from_secs(5);

/// One connection out of the pool.
pub(crate) struct PooledConnection(pub(crate) Object);

impl PooledConnection {
    /// The schema, if this code can work with it.
    pub(crate) async fn schema(&mut self) -> Result<KnownSchema, TransactionError> {
        let unusable = |error| StoreError::unavailable(OpenError::Unusable(error));
        let row = self.0.query_one(SCHEMA, &[]).await.map_err(unusable)?;
        let columns = || Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?));
        let (version, works_with, salt, is_serializable) = columns().map_err(unusable)?;
        KnownSchema::checked(version, works_with, salt, is_serializable)
    }

    /// Ends the transaction without a trace; a connection that cannot is closed.
    pub(crate) async fn roll_back(self) {
        let rolled_back = timeout(ROLL_BACK_MAX, self.0.batch_execute("ROLLBACK")).await;
        if !matches!(rolled_back, Ok(Ok(()))) {
            self.close();
        }
    }

    /// Takes the connection out of the pool; the server rolls back what it had open.
    pub(crate) fn close(self) {
        drop(Object::take(self.0));
    }
}
