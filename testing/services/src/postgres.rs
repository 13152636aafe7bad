//! PostgreSQL: a cluster of its own in a temporary directory, on a free loopback port.

use std::{
    env, fs,
    os::unix::{fs::chown, process::CommandExt},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::{
    debian,
    error::ServiceError,
    ports,
    process::{self, Process, StopStep},
    roster::{DetachedServer, Service},
};

const SERVER: &str = "PostgreSQL";
pub(crate) const ACCOUNT: &str = "postgres";
const REMEDY: &str = "install it (Debian: `apt-get install -y postgresql`) \
                      or put `initdb` and `postgres` on the PATH";

const TOOL_LIMIT: Duration = Duration::from_secs(60);
const READY_LIMIT: Duration = Duration::from_secs(60);

/// A running PostgreSQL server. Dropping it stops it and removes its files.
///
/// It listens on 127.0.0.1 and on a Unix socket in its directory, trusts everybody who reaches
/// either, and writes durably (`fsync` is on). When root starts it, it runs as user `postgres`.
#[derive(Debug)]
pub struct Server {
    process: Option<Process>,
    dir: TempDir,
    port: u16,
    tools: Tools,
    settings: Settings,
}

/// What differs from a plain server.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Server settings as `key=value`, such as `synchronous_commit=off`; they win over ours.
    pub config: Vec<String>,
}

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Sessions are ended and everything is written out.
    Fast,
    /// All processes quit at once, as in a crash; the next start recovers from the log.
    Immediate,
}

impl Server {
    /// Creates a cluster and starts a server on it, installing PostgreSQL first if need be.
    ///
    /// When it returns, the server accepts connections.
    pub fn start(settings: Settings) -> Result<Self, ServiceError> {
        let tools = Tools::find_or_install()?;
        let dir = tempfile::Builder::new().prefix("hapax-postgres-").tempdir();
        let dir = dir.map_err(ServiceError::io("make a temporary directory"))?;
        tools.account.hand_over(dir.path())?;
        let mut initdb = tools.command("initdb");
        initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]);
        initdb.args(["--no-sync", "--pgdata"]).arg(data_dir(dir.path()));
        process::run(&mut initdb, TOOL_LIMIT)?;
        let mut server = Self { process: None, dir, port: 0, tools, settings };
        server.start_on_a_free_port()?;
        Ok(server)
    }

    /// Where clients connect: `postgres://postgres@127.0.0.1:PORT/postgres`.
    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// The id of its first process; `None` while it is stopped.
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    /// Where it keeps its data.
    pub fn data_dir(&self) -> PathBuf {
        data_dir(self.dir.path())
    }

    /// Stops it and keeps its files; does nothing if it is stopped already.
    pub fn stop(&mut self, mode: Mode) -> Result<(), ServiceError> {
        if let Some(process) = &mut self.process {
            process.stop(mode.steps())?;
            self.process = None;
        }
        Ok(())
    }

    /// Starts it again on the same port and files; does nothing if it is running.
    pub fn resume(&mut self) -> Result<(), ServiceError> {
        if self.process.is_none() {
            self.process = Some(self.launch()?);
        }
        Ok(())
    }

    /// Stops it as told, then starts it again on the same port and files.
    pub fn restart(&mut self, mode: Mode) -> Result<(), ServiceError> {
        self.stop(mode)?;
        self.resume()
    }

    /// Leaves the server running after this program has ended.
    pub(crate) fn detach(mut self) -> DetachedServer {
        self.dir.disable_cleanup(true);
        let pids = self.process.take().iter().map(Process::pid).collect();
        let (url, dir) = (self.url(), self.dir.path().to_owned());
        DetachedServer { service: Service::Postgres, url, pids, dir }
    }

    fn start_on_a_free_port(&mut self) -> Result<(), ServiceError> {
        let process = ports::until_free(|| {
            [self.port] = ports::free()?;
            self.launch()
        })?;
        self.process = Some(process);
        Ok(())
    }

    fn launch(&self) -> Result<Process, ServiceError> {
        let (dir, data) = (self.dir.path(), self.data_dir());
        let ours = [
            "listen_addresses=127.0.0.1".to_owned(),
            format!("port={}", self.port),
            format!("unix_socket_directories={}", dir.display()),
            "fsync=on".to_owned(),
            "max_connections=200".to_owned(),
        ];
        let mut command = self.tools.command("postgres");
        command.arg("-D").arg(&data);
        for setting in ours.iter().chain(&self.settings.config) {
            command.arg("-c").arg(setting);
        }
        let mut process = Process::spawn(SERVER, &mut command, &dir.join("server.log"))?;
        let pid = process.pid();
        let ready = process.wait_until_ready(READY_LIMIT, || is_ready(&data, pid));
        if ready.is_err() {
            // The error of the start is the one to tell; a failing stop would only hide it.
            let _ = process.stop(Mode::Immediate.steps());
        }
        ready.map(|()| process)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nobody is left to be told, and its files are removed in any case.
        let _ = self.stop(Mode::Immediate);
    }
}

impl Mode {
    pub(crate) fn steps(self) -> &'static [StopStep] {
        const FAST: StopStep = StopStep { signal: Signal::INT, patience: Duration::from_secs(20) };
        const IMMEDIATE: StopStep =
            StopStep { signal: Signal::QUIT, patience: Duration::from_secs(60) };
        match self {
            Self::Fast => &[FAST, IMMEDIATE, StopStep::KILL],
            Self::Immediate => &[IMMEDIATE, StopStep::KILL],
        }
    }
}

/// Where the programs are, and as whom they run.
#[derive(Debug)]
struct Tools {
    bin: PathBuf,
    account: Account,
}

impl Tools {
    fn find_or_install() -> Result<Self, ServiceError> {
        let bin = match find_bin() {
            Some(bin) => bin,
            None => {
                debian::install(SERVER, "postgresql", REMEDY)?;
                find_bin().ok_or(ServiceError::Missing { server: SERVER, remedy: REMEDY })?
            }
        };
        Ok(Self { bin, account: Account::find()? })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.bin.join(program));
        // The directory we are called in may be closed to the other user.
        command.current_dir("/").env("LC_ALL", "C");
        self.account.apply(&mut command);
        command
    }
}

/// As whom PostgreSQL and its companions run: they refuse to run as root.
#[derive(Debug)]
pub(crate) struct Account(Option<(u32, u32)>);

impl Account {
    pub(crate) fn find() -> Result<Self, ServiceError> {
        let is_root = rustix::process::geteuid().is_root();
        is_root.then(|| Ok((id_of("-u")?, id_of("-g")?))).transpose().map(Self)
    }

    /// Makes the directory one that this account may write to.
    pub(crate) fn hand_over(&self, dir: &Path) -> Result<(), ServiceError> {
        let Some((user, group)) = self.0 else { return Ok(()) };
        let owned = chown(dir, Some(user), Some(group));
        owned.map_err(ServiceError::io(format!("hand {} over", dir.display())))
    }

    pub(crate) fn apply(&self, command: &mut Command) {
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
    }
}

fn find_bin() -> Option<PathBuf> {
    let pg_config = || Command::new("pg_config").arg("--bindir").output().ok();
    newest_debian_bin(Path::new("/usr/lib/postgresql"))
        .or_else(|| {
            let output = pg_config()?;
            has_tools(Path::new(String::from_utf8_lossy(&output.stdout).trim()))
        })
        .or_else(|| env::split_paths(&env::var_os("PATH")?).find_map(|dir| has_tools(&dir)))
}

fn newest_debian_bin(root: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(root).ok()?.filter_map(|entry| {
        let version: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        Some((version, has_tools(&root.join(version.to_string()).join("bin"))?))
    });
    versions.max_by_key(|(version, _)| *version).map(|(_, bin)| bin)
}

fn has_tools(dir: &Path) -> Option<PathBuf> {
    let complete = ["initdb", "postgres"].iter().all(|tool| dir.join(tool).is_file());
    complete.then(|| dir.to_owned())
}

fn id_of(which: &str) -> Result<u32, ServiceError> {
    let printed = process::run(Command::new("id").args([which, ACCOUNT]), TOOL_LIMIT)?;
    printed.trim().parse().map_err(|_| ServiceError::Missing {
        server: "the user `postgres`",
        remedy: "root cannot run PostgreSQL itself: create the user, or run as another one",
    })
}

fn data_dir(dir: &Path) -> PathBuf {
    dir.join("data")
}

/// The server writes its id on the first line of this file and its status on the eighth.
fn is_ready(data: &Path, pid: u32) -> bool {
    let Ok(text) = fs::read_to_string(data.join("postmaster.pid")) else { return false };
    let mut lines = text.lines().map(str::trim);
    lines.next() == Some(&pid.to_string()) && lines.nth(6) == Some("ready")
}
