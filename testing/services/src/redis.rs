//! Redis: a server of its own in a temporary directory, on a free loopback port.
//!
//! Every write is appended to a file; [`Sync`] says when that file is on disk.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    debian,
    error::ServiceError,
    ports,
    process::{self, Process, StopStep},
    programs,
};

const SERVER: &str = "Redis";
const PROGRAM: &str = "redis-server";
const REMEDY: &str = "install it (Debian: `apt-get install -y redis-server`) \
                      or put `redis-server` on the PATH";

const VERSION_LIMIT: Duration = Duration::from_secs(10);
const READY_LIMIT: Duration = Duration::from_secs(30);

/// A running Redis server. Dropping it stops it and removes its files.
///
/// It listens on 127.0.0.1 alone and lets in everybody who reaches it.
#[derive(Debug)]
pub struct RedisServer {
    process: Process,
    dir: TempDir,
    port: u16,
}

/// When what was appended is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// Before it is acknowledged.
    Always,
    /// Within about a second: a crash may lose what was acknowledged.
    EverySecond,
}

impl RedisServer {
    /// Starts an empty server, installing Redis first if need be.
    ///
    /// When it returns, the server accepts connections.
    pub fn start(sync: Sync) -> Result<Self, ServiceError> {
        let program = find_or_install()?;
        ports::until_free(|| Self::launch(&program, sync))
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.process.pid()
    }

    /// Where it keeps its log and its data.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    fn launch(program: &Path, sync: Sync) -> Result<Self, ServiceError> {
        let dir = tempfile::Builder::new().prefix("hapax-redis-").tempdir();
        let dir = dir.map_err(ServiceError::io("make a temporary directory"))?;
        let [port] = ports::free()?;
        let mut command = Command::new(program);
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
        command.arg("--dir").arg(dir.path());
        command.args(["--daemonize", "no", "--save", "", "--appendonly", "yes"]);
        command.args(["--appendfsync", sync.setting()]);
        let process = Process::spawn(SERVER, &mut command, &dir.path().join("server.log"))?;
        // Made before it is ready, so that dropping it stops the process in any case.
        let mut server = Self { process, dir, port };
        let ready = |log: &str| log.contains("Ready to accept connections");
        server.process.wait_until_logged(READY_LIMIT, ready)?;
        Ok(server)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // Nobody is left to be told, and its files are removed in any case.
        let _ = self.process.stop(&[StopStep::KILL]);
    }
}

impl Sync {
    fn setting(self) -> &'static str {
        match self {
            Self::Always => "always",
            Self::EverySecond => "everysec",
        }
    }
}

/// Which Redis there is, such as `7.0.15`, installing it first if need be.
pub fn version() -> Result<String, ServiceError> {
    let said = process::run(Command::new(find_or_install()?).arg("--version"), VERSION_LIMIT)?;
    let version = said.split_whitespace().find_map(|word| word.strip_prefix("v="));
    Ok(version.unwrap_or_default().to_owned())
}

fn find_or_install() -> Result<PathBuf, ServiceError> {
    if let Some(program) = programs::find(PROGRAM, &[]) {
        return Ok(program);
    }
    debian::install(SERVER, PROGRAM, REMEDY)?;
    programs::find(PROGRAM, &[]).ok_or(ServiceError::Missing { server: SERVER, remedy: REMEDY })
}
