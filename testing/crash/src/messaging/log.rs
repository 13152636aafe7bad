//! The outbox as the hunt sees it.

use hapax_core::{
    StoreError,
    outbox::{Lag, OutboxAdmin, OutboxLog, Selection},
};

use super::{line::Line, relay};
use crate::{error::CrashError, open::DurableAddress};

/// The outbox behind an address.
#[derive(Debug, Clone)]
pub(super) enum Log {
    Postgres(hapax_postgres::Outbox),
    Sqlite(hapax_sqlite::Store),
}

impl Log {
    pub(super) async fn open(address: &DurableAddress) -> Result<Self, CrashError> {
        Ok(match address {
            DurableAddress::Postgres(url) => Self::Postgres(relay::postgres(url).await?),
            DurableAddress::Sqlite(path) => {
                Self::Sqlite(DurableAddress::sqlite(path, hapax_core::Faults::default())?)
            }
        })
    }

    /// Makes a line's destination known, so that nothing is removed before it was sent.
    pub(super) async fn register(&self, line: Line) -> Result<(), CrashError> {
        let (destination, start) = (line.destination()?, hapax_core::outbox::Start::Beginning);
        match self {
            Self::Postgres(outbox) => outbox.register(destination, start).await?,
            Self::Sqlite(outbox) => outbox.register(destination, start).await?,
        }
        Ok(())
    }

    /// Has everything sent again that was parked on a line.
    pub(super) async fn replay(&self, line: Line) -> Result<usize, StoreError> {
        match self {
            Self::Postgres(outbox) => outbox.replay(&line.name(), Selection::All).await,
            Self::Sqlite(outbox) => outbox.replay(&line.name(), Selection::All).await,
        }
    }

    /// How far a line is behind.
    pub(super) async fn lag(&self, line: Line) -> Result<Option<Lag>, StoreError> {
        match self {
            Self::Postgres(outbox) => outbox.lag(&line.name()).await,
            Self::Sqlite(outbox) => outbox.lag(&line.name()).await,
        }
    }
}
