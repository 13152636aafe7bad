//! The other end of every call, in a process of its own.

use std::path::Path;

use crate::{
    BenchError,
    arms::StoredCount,
    http::{Child, Connection, HttpError},
};

/// A running upstream. Dropping it stops it.
pub(super) struct BenchUpstream {
    child: Child,
    url: String,
}

impl BenchUpstream {
    pub(super) fn start(directory: &Path) -> Result<Self, BenchError> {
        let child = Child::upstream(directory)?;
        let url = format!("http://127.0.0.1:{}/payments", child.port);
        Ok(Self { child, url })
    }

    /// Where calls go.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.pid()
    }

    /// Which keys it executed: once, and otherwise.
    pub(super) async fn executed(&self) -> Result<StoredCount, BenchError> {
        let mut connection =
            Connection::connect(self.child.port).await.map_err(HttpError::Connect)?;
        let totals = connection.totals().await.map_err(HttpError::Ledger)?;
        let once = totals.keys - totals.repeated;
        Ok(StoredCount { completed: once, others: totals.executions - once })
    }
}
