//! A Redis server of its own, in a temporary directory.

use std::{
    net::{SocketAddr, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

use hapax_services::{debian, process::Process};

use crate::{error::BenchError, stage, ways::Fsync};

const SERVER: &str = "Redis";
const READY_LIMIT: Duration = Duration::from_secs(20);

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Redis {
    process: Process,
    port: u16,
}

impl Redis {
    /// Installs it where that is possible and needed.
    pub(crate) fn find_or_install() -> Result<(), BenchError> {
        if Command::new("redis-server").arg("--version").output().is_ok() {
            return Ok(());
        }
        const REMEDY: &str = "install it (Debian: `apt-get install -y redis-server`)";
        Ok(debian::install(SERVER, "redis-server", REMEDY)?)
    }

    /// An empty one whose files are in this directory.
    pub(crate) fn start(fsync: Fsync, directory: &Path) -> Result<Self, BenchError> {
        let port = stage::free_port()?;
        let fsync = match fsync {
            Fsync::Always => "always",
            Fsync::Everysec => "everysec",
        };
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", fsync]);
        command.args(["--maxmemory-policy", "noeviction", "--dir"]).arg(directory);
        let process = Process::spawn(SERVER, &mut command, &directory.join("redis.log"))?;
        let mut server = Self { process, port };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        server.process.wait_until_ready(READY_LIMIT, || {
            TcpStream::connect_timeout(&address, READY_LIMIT).is_ok()
        })?;
        Ok(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        // Its files are removed in any case.
        let _ = self.process.stop(stage::KILL);
    }
}
