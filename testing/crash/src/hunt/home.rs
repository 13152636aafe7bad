//! Where the victims of one worker live: a store of their own, and a directory.

use std::path::Path;

use tempfile::TempDir;
use tokio::runtime::{self, Runtime};
use tokio_postgres::NoTls;

use crate::{error::CrashError, open::DurableAddress};

/// A store of its own, kept from episode to episode.
#[derive(Debug)]
pub(crate) struct Home {
    runtime: Runtime,
    dir: TempDir,
    address: DurableAddress,
}

impl Home {
    /// A new database on the server at `url`, or a new SQLite file if there is none.
    pub(crate) fn make(url: Option<&str>) -> Result<Self, CrashError> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(CrashError::io("start a runtime"))?;
        let dir = tempfile::Builder::new().prefix("hapax-crash-").tempdir();
        let dir = dir.map_err(CrashError::io("make a temporary directory"))?;
        let address = match url {
            None => DurableAddress::Sqlite(dir.path().join("hapax.db")),
            Some(url) => {
                let name = format!("hapax_crash_{:016x}", fastrand::u64(..));
                runtime.block_on(execute(url, &format!("CREATE DATABASE {name}")))?;
                let server = url.rsplit_once('/').map_or(url, |(server, _)| server);
                DurableAddress::Postgres(format!("{server}/{name}"))
            }
        };
        Ok(Self { runtime, dir, address })
    }

    /// Removes the database again, where there is one on the server at `url`.
    pub(crate) fn leave(self, url: Option<&str>) -> Result<(), CrashError> {
        match (&self.address, url) {
            (DurableAddress::Postgres(own), Some(url)) => {
                let name = own.rsplit('/').next().unwrap_or_default();
                self.block_on(execute(url, &format!("DROP DATABASE {name} WITH (FORCE)")))
            }
            (DurableAddress::Postgres(_), None) | (DurableAddress::Sqlite(_), _) => Ok(()),
        }
    }

    /// Where the store is.
    pub(crate) fn address(&self) -> &DurableAddress {
        &self.address
    }

    /// Where there is room for files.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Leaves the files for whoever wants to know what happened.
    pub(crate) fn keep(&mut self) {
        self.dir.disable_cleanup(true);
    }

    /// Does something that has to be waited for, such as reading the store.
    pub(crate) fn block_on<F: Future>(&self, work: F) -> F::Output {
        self.runtime.block_on(work)
    }
}

async fn execute(url: &str, statement: &str) -> Result<(), CrashError> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    client.batch_execute(statement).await?;
    connection.abort();
    Ok(())
}
