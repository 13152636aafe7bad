//! PostgreSQL: a cluster of its own in a temporary directory, on a free loopback port.

use std::{
    env, fs,
    os::unix::{
        fs::{PermissionsExt, chown},
        process::CommandExt,
    },
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
    postgres_versions::Version,
    process::{self, Process, StopStep},
    roster::{DetachedServer, Service},
};

const SERVER: &str = "PostgreSQL";
pub(crate) const ACCOUNT: &str = "postgres";
const REMEDY: &str = "install it (Debian: `apt-get install -y postgresql`) \
                      or put `initdb` and `postgres` on the PATH";

/// Where Debian has a directory for each version.
const DEBIAN: &str = "/usr/lib/postgresql";

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
    /// Files in its data directory, by name, which it alone may read: certificates, keys, `pg_hba.conf`.
    pub files: Vec<(&'static str, String)>,
    /// Of which version it is; the newest that is installed, if `None`.
    pub version: Option<Version>,
    /// Whether it copies its log to [`Server::archive_dir`], a segment at a time.
    pub archives: bool,
}

/// The files of a server at one moment.
#[derive(Debug)]
pub struct Backup(Server);

impl Backup {
    /// Starts a server on these files, recovered up to the end of the backup and no further: on a timeline of its own.
    ///
    /// When it returns, the recovery is over, and the server takes writes.
    pub fn restore(self) -> Result<Server, ServiceError> {
        self.recovered("restore_command = 'false'\nrecovery_target = 'immediate'\n")
    }

    /// The same with the log that a server has archived, as far as `target` says: a setting and its value, such as
    /// `recovery_target_name = 'before'`.
    pub fn restore_up_to(self, archive: &Path, target: &str) -> Result<Server, ServiceError> {
        let archive = archive.display();
        self.recovered(&format!("restore_command = 'cp {archive}/%f %p'\n{target}\n"))
    }

    fn recovered(mut self, settings: &str) -> Result<Server, ServiceError> {
        let data = self.0.data_dir();
        fs::write(data.join("recovery.signal"), "")
            .map_err(ServiceError::io("begin a recovery"))?;
        let lines = format!("{settings}recovery_target_action = 'promote'\n");
        fs::write(data.join("postgresql.auto.conf"), lines)
            .map_err(ServiceError::io("say how far a recovery goes"))?;
        self.0.start_on_a_free_port()?;
        self.0.end_of_recovery()?;
        Ok(self.0)
    }
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
        let tools = match settings.version {
            None => Tools::find_or_install()?,
            Some(version) => Tools { bin: version.programs()?, account: Account::find()? },
        };
        let dir = tempfile::Builder::new().prefix("hapax-postgres-").tempdir();
        let dir = dir.map_err(ServiceError::io("make a temporary directory"))?;
        tools.account.hand_over(dir.path())?;
        let mut initdb = tools.command("initdb");
        initdb.args(["--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C"]);
        initdb.args(["--no-sync", "--pgdata"]).arg(data_dir(dir.path()));
        process::run(&mut initdb, TOOL_LIMIT)?;
        for (name, content) in &settings.files {
            tools.account.write(&data_dir(dir.path()).join(name), content)?;
        }
        let mut server = Self { process: None, dir, port: 0, tools, settings };
        if server.settings.archives {
            let archive = server.archive_dir();
            fs::create_dir(&archive).map_err(ServiceError::io("make an archive"))?;
            server.tools.account.hand_over(&archive)?;
        }
        server.start_on_a_free_port()?;
        Ok(server)
    }

    /// A standby of this server, made from a copy of it, that follows it.
    ///
    /// When it returns, it has everything that was committed before, and answers who only reads.
    pub fn standby(&self, settings: Settings) -> Result<Self, ServiceError> {
        let mut standby = self.copy(settings)?;
        let signal = standby.data_dir().join("standby.signal");
        fs::write(&signal, "").map_err(ServiceError::io("make a standby"))?;
        standby.follow(Some(self.port))?;
        standby.start_on_a_free_port()?;
        Ok(standby)
    }

    /// A server that is restored from a backup of this one, as it was when it was taken.
    pub fn backup(&self, settings: Settings) -> Result<Backup, ServiceError> {
        Ok(Backup(self.copy(settings)?))
    }

    /// Has a standby follow the server on this port, or nobody from now on. What it has received it keeps.
    pub fn follow(&mut self, port: Option<u16>) -> Result<(), ServiceError> {
        let address = port.map(|port| format!("host=127.0.0.1 port={port} user=postgres"));
        let address = address.unwrap_or_default();
        let settings = self.data_dir().join("postgresql.auto.conf");
        let line = format!("primary_conninfo = '{address}'\n");
        fs::write(settings, line).map_err(ServiceError::io("say whom a standby follows"))?;
        match &self.process {
            Some(_) => self.control(&["reload"]),
            None => Ok(()),
        }
    }

    /// Makes a standby a server of its own, with what it has received.
    pub fn promote(&mut self) -> Result<(), ServiceError> {
        self.control(&["promote", "--wait"])
    }

    /// Ends all its processes at once, as the loss of its machine does.
    pub fn kill(&mut self) -> Result<(), ServiceError> {
        if let Some(process) = &mut self.process {
            process.stop(&[StopStep::KILL])?;
            self.process = None;
        }
        Ok(())
    }

    /// Dumps the database `postgres`, and restores that into a new one of this name.
    pub fn dump_into(&self, name: &str) -> Result<(), ServiceError> {
        let file = self.dir.path().join(name);
        let run = |program: &str, args: &[&str]| {
            let mut command = self.tools.command(program);
            command.args(["--host=127.0.0.1", "--username=postgres"]);
            command.arg(format!("--port={}", self.port)).args(args);
            process::run(&mut command, TOOL_LIMIT).map(|_| ())
        };
        let file = file.display().to_string();
        run("pg_dump", &["--format=custom", "--file", &file, "postgres"])?;
        run("createdb", &[name])?;
        run("pg_restore", &["--dbname", name, &file])
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Copies the files of the running server into a directory of their own.
    fn copy(&self, settings: Settings) -> Result<Self, ServiceError> {
        let tools = Tools::find_or_install()?;
        let dir = tempfile::Builder::new().prefix("hapax-postgres-").tempdir();
        let dir = dir.map_err(ServiceError::io("make a temporary directory"))?;
        tools.account.hand_over(dir.path())?;
        let mut copy = tools.command("pg_basebackup");
        copy.args(["--host=127.0.0.1", "--username=postgres", "--checkpoint=fast", "--no-sync"]);
        copy.arg(format!("--port={}", self.port)).arg("--pgdata").arg(data_dir(dir.path()));
        process::run(&mut copy, TOOL_LIMIT)?;
        Ok(Self { process: None, dir, port: 0, tools, settings })
    }

    fn control(&self, order: &[&str]) -> Result<(), ServiceError> {
        let mut control = self.tools.command("pg_ctl");
        control.arg("--pgdata").arg(self.data_dir()).arg("--silent").args(order);
        process::run(&mut control, TOOL_LIMIT).map(|_| ())
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

    /// Where it copies its log, if it does.
    pub fn archive_dir(&self) -> PathBuf {
        self.dir.path().join("archive")
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

    /// Waits until a server that is let read takes writes too.
    fn end_of_recovery(&mut self) -> Result<(), ServiceError> {
        let mut look = self.tools.command("pg_controldata");
        look.arg(data_dir(self.dir.path()));
        let Some(process) = &mut self.process else { return Ok(()) };
        process.wait_until_ready(READY_LIMIT, || {
            // What cannot be read now is read at the next look; the limit tells.
            let state = process::run(&mut look, TOOL_LIMIT).unwrap_or_default();
            let state = state.lines().find_map(|line| line.strip_prefix(CLUSTER_STATE));
            state.is_some_and(|state| state.trim() == "in production")
        })
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
        let archive = self.archive_dir();
        let archive = archive.display();
        let archiving = [
            "archive_mode=on".to_owned(),
            format!("archive_command=test ! -f {archive}/%f && cp %p {archive}/%f"),
        ];
        let archiving = archiving.iter().filter(|_| self.settings.archives);
        for setting in ours.iter().chain(archiving).chain(&self.settings.config) {
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

    /// Makes the file or directory one that this account may write to.
    pub(crate) fn hand_over(&self, dir: &Path) -> Result<(), ServiceError> {
        let Some((user, group)) = self.0 else { return Ok(()) };
        let owned = chown(dir, Some(user), Some(group));
        owned.map_err(ServiceError::io(format!("hand {} over", dir.display())))
    }

    /// Writes a file that this account alone may read.
    fn write(&self, path: &Path, content: &str) -> Result<(), ServiceError> {
        let written = fs::write(path, content)
            .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o600)));
        written.map_err(ServiceError::io(format!("write {}", path.display())))?;
        self.hand_over(path)
    }

    pub(crate) fn apply(&self, command: &mut Command) {
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
    }
}

/// Where the programs of the newest version are, `pg_dump` among them; it is installed first if need be.
pub fn programs() -> Result<PathBuf, ServiceError> {
    Tools::find_or_install().map(|tools| tools.bin)
}

fn find_bin() -> Option<PathBuf> {
    let pg_config = || Command::new("pg_config").arg("--bindir").output().ok();
    newest_debian_bin(Path::new(DEBIAN))
        .map(|(_, bin)| bin)
        .or_else(|| {
            let output = pg_config()?;
            has_tools(Path::new(String::from_utf8_lossy(&output.stdout).trim()))
        })
        .or_else(|| env::split_paths(&env::var_os("PATH")?).find_map(|dir| has_tools(&dir)))
}

/// The version of the server that is started, where Debian installed it.
pub(crate) fn debian_version() -> Option<u32> {
    newest_debian_bin(Path::new(DEBIAN)).map(|(version, _)| version)
}

fn newest_debian_bin(root: &Path) -> Option<(u32, PathBuf)> {
    let versions = fs::read_dir(root).ok()?.filter_map(|entry| {
        let version: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        Some((version, has_tools(&root.join(version.to_string()).join("bin"))?))
    });
    versions.max_by_key(|(version, _)| *version)
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

/// What stands before the state of a server in the print of its control file. It says so from the instant on that
/// the server takes writes, as `pg_ctl promote` knows.
const CLUSTER_STATE: &str = "Database cluster state:";

/// The server writes its id on the first line of this file and its status on the eighth. That is `ready` as soon as
/// clients are let in, though they may only read while a recovery goes on or a standby follows.
fn is_ready(data: &Path, pid: u32) -> bool {
    let Ok(text) = fs::read_to_string(data.join("postmaster.pid")) else { return false };
    let mut lines = text.lines().map(str::trim);
    lines.next() == Some(&pid.to_string()) && lines.nth(6) == Some("ready")
}
