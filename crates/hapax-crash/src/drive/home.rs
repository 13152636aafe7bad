//! Where the victims of one worker live: a store of their own, and a directory.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use tokio_postgres::NoTls;

use crate::{error::CrashError, open::Address};

/// A store of its own, kept from episode to episode.
#[derive(Debug)]
pub(crate) struct Home {
    dir: TempDir,
    address: Address,
}

impl Home {
    /// A new SQLite file.
    pub(crate) fn sqlite() -> Result<Self, CrashError> {
        let dir = directory()?;
        let address = Address::Sqlite(dir.path().join("hapax.db"));
        Ok(Self { dir, address })
    }

    /// A new database on the server at `url`.
    pub(crate) async fn postgres(url: &str) -> Result<Self, CrashError> {
        let name = format!("hapax_crash_{:016x}", fastrand::u64(..));
        execute(url, &format!("CREATE DATABASE {name}")).await?;
        let server = url.rsplit_once('/').map_or(url, |(server, _)| server);
        Ok(Self { dir: directory()?, address: Address::Postgres(format!("{server}/{name}")) })
    }

    /// Removes the database again, where there is one on the server at `url`.
    pub(crate) async fn leave(self, url: &str) -> Result<(), CrashError> {
        match &self.address {
            Address::Postgres(own) => {
                let name = own.rsplit('/').next().unwrap_or_default();
                execute(url, &format!("DROP DATABASE {name} WITH (FORCE)")).await
            }
            Address::Sqlite(_) => Ok(()),
        }
    }

    /// Where the store is.
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Where there is room for files.
    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Leaves the files for whoever wants to know what happened.
    pub(crate) fn keep(&mut self) -> PathBuf {
        self.dir.disable_cleanup(true);
        self.dir.path().to_owned()
    }
}

fn directory() -> Result<TempDir, CrashError> {
    let dir = tempfile::Builder::new().prefix("hapax-crash-").tempdir();
    dir.map_err(CrashError::io("make a temporary directory"))
}

async fn execute(url: &str, statement: &str) -> Result<(), CrashError> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    let connection = tokio::spawn(connection);
    client.batch_execute(statement).await?;
    connection.abort();
    Ok(())
}
