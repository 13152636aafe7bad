//! The gateway under test: the program `hapax`, started as `hapax serve`.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::child::{self, Child};
use crate::BenchError;

/// How a gateway is set up.
#[derive(Debug)]
pub(crate) struct GatewaySetup<'a> {
    pub(crate) program: &'a Path,
    pub(crate) upstream: u16,
    /// Where records are kept.
    pub(crate) store: String,
    pub(crate) protection: GatewayProtection,
    /// What else its configuration says: settings, then tables, each on lines of its own.
    pub(crate) settings: String,
    /// Where its files are.
    pub(crate) directory: &'a Path,
}

/// A running gateway. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct BenchGateway {
    pub(crate) child: Child,
    /// The port of its operators.
    pub(crate) admin: u16,
}

/// What happens to a request that changes something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GatewayProtection {
    /// It passes, whatever its key.
    Pass,
    /// It happens once for each key.
    Protect,
}

/// Most connections of clients: more than any measurement opens.
const CONNECTIONS_MAX: usize = 20_000;

impl GatewaySetup<'_> {
    /// Starts it, and returns when it accepts connections.
    pub(crate) fn start(&self) -> Result<BenchGateway, BenchError> {
        let (port, admin) = (child::free_port()?, child::free_port()?);
        let file = self.directory.join("gateway.toml");
        fs::write(&file, self.configuration()).map_err(BenchError::Directory)?;
        let mut command = Command::new(self.program);
        command.args(["serve", "--listen", &format!("127.0.0.1:{port}")]);
        command.args(["--upstream", &format!("http://127.0.0.1:{}", self.upstream)]);
        command.args(["--store", &self.store, "--admin", &format!("127.0.0.1:{admin}")]);
        command.arg("--config").arg(&file);
        let child = Child::start("gateway", &mut command, self.directory, port)?;
        Ok(BenchGateway { child, admin })
    }

    fn configuration(&self) -> String {
        let otherwise = match self.protection {
            GatewayProtection::Pass => "pass",
            GatewayProtection::Protect => "protect",
        };
        let settings = &self.settings;
        format!(
            "otherwise = \"{otherwise}\"\n{settings}[limits]\nconnections = {CONNECTIONS_MAX}\n"
        )
    }
}

/// The address of a fresh SQLite store in this directory.
pub(crate) fn sqlite(directory: &Path) -> String {
    format!("sqlite:{}", sqlite_file(directory).display())
}

/// Its file.
pub(super) fn sqlite_file(directory: &Path) -> PathBuf {
    directory.join("bench.db")
}
