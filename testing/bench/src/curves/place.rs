//! A store that keys are put into beforehand, and that is measured, perhaps more than once.

use std::{path::PathBuf, sync::Arc, time::Duration};

use hapax::{Options, Store, postgres, sqlite};
use tempfile::TempDir;
use tokio_postgres::Config;

use super::{
    mixed::{Mix, Mixed},
    stock::Stock,
};
use crate::{
    arms::{Arm as _, engine::EngineArm},
    error::BenchError,
    sample::{self, Measure, StoreGround, StoreSample},
    server::BenchServer,
};

/// The database of a store that is measured once.
pub(super) const DATABASE: &str = "hapax_bench_curves";

/// A store with a file or a database of its own.
pub(super) enum StorePlace<'a> {
    File { path: PathBuf, _directory: TempDir },
    Database { server: &'a BenchServer, name: String, config: Box<Config> },
}

/// What came out.
pub(super) struct Measured {
    pub(super) sample: StoreSample,
    /// The number of the next fresh request.
    pub(super) upcoming: u64,
}

impl<'a> StorePlace<'a> {
    /// A store with these keys in it, under a name that no other has meanwhile.
    pub(super) fn stocked(
        ground: StoreGround<'a>,
        name: &str,
        stock: Stock,
    ) -> Result<Self, BenchError> {
        let runtime = sample::workers()?;
        match ground {
            StoreGround::Sqlite(directory) => {
                let directory = tempfile::tempdir_in(directory).map_err(BenchError::Directory)?;
                let path = directory.path().join("bench.db");
                runtime.block_on(stock.put_in_file(&path))?;
                Ok(Self::File { path, _directory: directory })
            }
            StoreGround::Postgres(server) => {
                let config = Box::new(runtime.block_on(server.create(name))?);
                runtime.block_on(stock.put_in_database(&config))?;
                Ok(Self::Database { server, name: name.to_owned(), config })
            }
        }
    }

    /// Measures our way, with an engine of its own.
    pub(super) fn measure(
        &self,
        measure: Measure,
        mix: Mix,
        purge_every: Option<Duration>,
    ) -> Result<Measured, BenchError> {
        let runtime = sample::workers()?;
        match self {
            Self::File { path, .. } => runtime.block_on(async {
                let store = sqlite::Store::open(path, sqlite::Options::default())?;
                run(store, measure, mix, purge_every, None).await
            }),
            Self::Database { server, config, .. } => runtime.block_on(async {
                let store =
                    postgres::Store::connect(&**config, postgres::Options::default()).await?;
                run(store, measure, mix, purge_every, Some(server)).await
            }),
        }
    }

    pub(super) fn remove(self) -> Result<(), BenchError> {
        match self {
            Self::File { .. } => Ok(()),
            Self::Database { server, name, .. } => {
                sample::workers()?.block_on(server.remove(&name))
            }
        }
    }
}

async fn run<S: Store>(
    store: S,
    measure: Measure,
    mix: Mix,
    purge_every: Option<Duration>,
    server: Option<&BenchServer>,
) -> Result<Measured, BenchError> {
    let defaults = Options::default();
    let purge_every = purge_every.unwrap_or(defaults.purge_every);
    let engine = EngineArm::start(store, Options { purge_every, ..defaults })?;
    let arm = Arc::new(Mixed::new(engine, mix));
    let sample = measure.watch(server, None, &arm).await;
    let upcoming = arm.upcoming();
    arm.close().await;
    Ok(Measured { sample: sample?, upcoming })
}
