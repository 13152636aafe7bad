//! PgBouncer: a connection pooler in front of a PostgreSQL server, on a free loopback port.

use std::{
    fs,
    net::{Ipv4Addr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::{
    debian::{self, ForeignProgram},
    error::ServiceError,
    ports,
    postgres::{ACCOUNT, Account},
    process::{Process, StopStep},
    programs,
};

const SERVER: &str = "PgBouncer";
const REMEDY: &str = "install it (Debian: `apt-get install -y pgbouncer`) \
                      or put `pgbouncer` on the PATH";

/// The first release of Debian with a version that keeps prepared statements apart, and where that is in its package.
const NEWER: ((&str, &str), &str) = (("trixie", "pgbouncer"), "usr/sbin/pgbouncer");

const READY_LIMIT: Duration = Duration::from_secs(30);
const STOP: [StopStep; 2] =
    [StopStep { signal: Signal::TERM, patience: Duration::from_secs(10) }, StopStep::KILL];

/// A running pooler. Dropping it stops it and removes its files.
///
/// It listens on 127.0.0.1, trusts everybody who reaches it, and logs in to any database of the
/// server as the user it was started with. When root starts it, it runs as user `postgres`.
#[derive(Debug)]
pub struct Pooler {
    process: Process,
    url: String,
    _dir: TempDir,
}

/// For how long a client keeps the connection to the server that it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolMode {
    /// Until it disconnects.
    Session,
    /// Until its transaction ends: what a session remembers does not last.
    Transaction,
    /// For one statement: there are no transactions of several.
    Statement,
}

impl Pooler {
    /// Starts a pooler in front of the server at `postgres://USER@HOST:PORT/DATABASE`, installing
    /// PgBouncer first if need be.
    ///
    /// When it returns, the pooler accepts connections.
    pub fn start(url: &str, mode: PoolMode) -> Result<Self, ServiceError> {
        let (program, account) = (find_or_install()?, Account::find()?);
        Self::launched(url, mode, "", || {
            let mut command = Command::new(&program);
            account.apply(&mut command);
            command
        })
    }

    /// Starts one in transaction mode, of a version that keeps the prepared statements of clients apart (1.21 or
    /// later), unpacking it first if need be.
    pub fn keeping_statements(url: &str) -> Result<Self, ServiceError> {
        let (package, place) = NEWER;
        let program = ForeignProgram::unpacked(package, place, REMEDY)?;
        let is_root = rustix::process::geteuid().is_root();
        Self::launched(url, PoolMode::Transaction, "max_prepared_statements = 200\n", || {
            let mut command = program.command();
            // It was unpacked where the other user may not look.
            command.args(is_root.then_some(["-u", ACCOUNT]).iter().flatten());
            command
        })
    }

    fn launched(
        url: &str,
        mode: PoolMode,
        more: &str,
        program: impl Fn() -> Command,
    ) -> Result<Self, ServiceError> {
        let upstream = PooledServer::parse(url).ok_or(ServiceError::Address {
            server: "PostgreSQL",
            expected: "postgres://USER@HOST:PORT/DATABASE",
        })?;
        let account = Account::find()?;
        let dir = tempfile::Builder::new().prefix("hapax-pgbouncer-").tempdir();
        let dir = dir.map_err(ServiceError::io("make a temporary directory"))?;
        account.hand_over(dir.path())?;
        ports::until_free(|| {
            let [port] = ports::free()?;
            let settings = dir.path().join("pgbouncer.ini");
            fs::write(&settings, upstream.settings(port, mode) + more)
                .map_err(ServiceError::io(format!("write {}", settings.display())))?;
            let mut command = program();
            // The directory we are called in may be closed to the other user.
            command.current_dir("/").env("LC_ALL", "C").arg(settings);
            Ok((launch(&mut command, dir.path(), port)?, port))
        })
        .map(|(process, port)| Self { process, url: upstream.through(port), _dir: dir })
    }

    /// Where clients connect: the address it was started with, by way of the pooler.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        // Nobody is left to be told, and its files are removed in any case.
        let _ = self.process.stop(&STOP);
    }
}

/// The server behind the pooler.
struct PooledServer<'a> {
    user: &'a str,
    host: &'a str,
    port: &'a str,
    database: &'a str,
}

impl<'a> PooledServer<'a> {
    fn parse(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.trim().split_once("://")?;
        let (user, rest) = rest.split_once('@')?;
        let (address, database) = rest.split_once('/')?;
        let (host, port) = address.rsplit_once(':')?;
        let is_plain = |part: &str| {
            let plain = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
            !part.is_empty() && part.chars().all(plain)
        };
        let is_known = matches!(scheme, "postgres" | "postgresql");
        let found = Self { user, host, port, database };
        (is_known && [user, host, port, database].into_iter().all(is_plain)).then_some(found)
    }

    fn settings(&self, port: u16, mode: PoolMode) -> String {
        let Self { user, host, port: behind, .. } = self;
        let mode = match mode {
            PoolMode::Session => "session",
            PoolMode::Transaction => "transaction",
            PoolMode::Statement => "statement",
        };
        format!(
            "[databases]\n* = host={host} port={behind} user={user}\n\n[pgbouncer]\n\
             listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n\
             pool_mode = {mode}\nmax_client_conn = 500\ndefault_pool_size = 20\n\
             ignore_startup_parameters = extra_float_digits\n"
        )
    }

    fn through(&self, port: u16) -> String {
        let Self { user, database, .. } = self;
        format!("postgres://{user}@127.0.0.1:{port}/{database}")
    }
}

fn launch(command: &mut Command, dir: &Path, port: u16) -> Result<Process, ServiceError> {
    let mut process = Process::spawn(SERVER, command, &dir.join("pooler.log"))?;
    let accepts = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
    let ready = process.wait_until_ready(READY_LIMIT, accepts);
    if ready.is_err() {
        // The error of the start is the one to tell; a failing stop would only hide it.
        let _ = process.stop(&STOP);
    }
    ready.map(|()| process)
}

fn find_or_install() -> Result<PathBuf, ServiceError> {
    if let Some(program) = find() {
        return Ok(program);
    }
    debian::install(SERVER, "pgbouncer", REMEDY)?;
    find().ok_or(ServiceError::Missing { server: SERVER, remedy: REMEDY })
}

fn find() -> Option<PathBuf> {
    programs::find("pgbouncer", &[]).or_else(|| programs::find("pgbouncer", &["/usr/sbin"]))
}
