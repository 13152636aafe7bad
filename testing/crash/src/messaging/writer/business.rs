use std::sync::Arc;

use tokio::{runtime::Handle, sync::watch, task::JoinHandle};

use super::{CommittedEvent, SharedLedger, postgres::Postgres, sqlite::Sqlite};
use crate::{error::CrashError, open::DurableAddress};

/// Those who write at the same time, where that is possible.
const WRITERS: u64 = 3;

/// A business whose transactions emit events.
#[derive(Debug, Clone)]
pub(in super::super) enum Business {
    Postgres(Postgres),
    Sqlite(Sqlite),
}

impl Business {
    /// One that keeps its books beside the outbox.
    pub(in super::super) fn at(
        outbox: &DurableAddress,
        lines: usize,
        told: Arc<SharedLedger>,
    ) -> Self {
        match outbox.clone() {
            DurableAddress::Postgres(url) => Self::Postgres(Postgres { url, lines, told }),
            DurableAddress::Sqlite(path) => Self::Sqlite(Sqlite { path, lines, told }),
        }
    }

    /// Makes its tables, and the outbox where there is none yet.
    pub(in super::super) async fn prepare(&self) -> Result<(), CrashError> {
        match self {
            Self::Postgres(postgres) => postgres.prepare().await,
            Self::Sqlite(sqlite) => sqlite.prepare(),
        }
    }

    /// Writes all the while, until told to stop.
    pub(in super::super) fn open(
        &self,
        runtime: &Handle,
        seed: u64,
        stop: &watch::Receiver<bool>,
    ) -> Vec<JoinHandle<Result<(), CrashError>>> {
        let dice = |number| fastrand::Rng::with_seed(seed.wrapping_add(number));
        match self {
            Self::Postgres(postgres) => {
                let write = |number| postgres.clone().write(dice(number), stop.clone());
                let write = |number| {
                    let writing = write(number);
                    runtime.spawn(async move {
                        writing.await;
                        Ok(())
                    })
                };
                (0..WRITERS).map(write).collect()
            }
            Self::Sqlite(sqlite) => {
                let (sqlite, dice, stop) = (sqlite.clone(), dice(0), stop.clone());
                vec![runtime.spawn_blocking(move || sqlite.write(dice, &stop))]
            }
        }
    }

    /// What was committed.
    pub(in super::super) async fn read(&self) -> Result<Vec<CommittedEvent>, CrashError> {
        match self {
            Self::Postgres(postgres) => postgres.read().await,
            Self::Sqlite(sqlite) => sqlite.read(),
        }
    }
}
