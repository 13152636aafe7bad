//! `hapax serve` as a child process.

use std::{
    env,
    fs::{self, File},
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use hapax_services::faketime::FakeClock;
use tempfile::TempDir;

use super::{ask, free_address, until};

/// The program of the version before, where there is one (`cargo xtask upgrade`); else this one.
pub(crate) fn program_before() -> PathBuf {
    env::var_os("HAPAX_PREVIOUS_PROGRAM").map_or_else(program, PathBuf::from)
}

fn program() -> PathBuf {
    env!("CARGO_BIN_EXE_hapax").into()
}

/// How a gateway is started.
pub(crate) struct Setup {
    program: PathBuf,
    upstream: String,
    store: Option<String>,
    config: String,
    token: Option<String>,
    files: Vec<(&'static str, String)>,
    clock: Option<FakeClock>,
    variables: Vec<(&'static str, String)>,
    args: Vec<&'static str>,
    file_kib_max: Option<u32>,
    open_files_max: Option<u32>,
}

impl Setup {
    pub(crate) fn new(upstream: SocketAddr) -> Self {
        let upstream = format!("http://{upstream}");
        Self {
            program: program(),
            upstream,
            store: None,
            config: String::new(),
            token: None,
            files: Vec::new(),
            clock: None,
            variables: Vec::new(),
            args: Vec::new(),
            file_kib_max: None,
            open_files_max: None,
        }
    }

    /// By this program.
    pub(crate) fn program(self, program: PathBuf) -> Self {
        Self { program, ..self }
    }

    /// In front of this URL instead.
    pub(crate) fn upstream(self, url: String) -> Self {
        Self { upstream: url, ..self }
    }

    /// With this file beside its configuration.
    pub(crate) fn file(mut self, name: &'static str, content: &str) -> Self {
        self.files.push((name, content.to_owned()));
        self
    }

    /// With these arguments too.
    pub(crate) fn args(self, args: &[&'static str]) -> Self {
        Self { args: args.to_vec(), ..self }
    }

    /// On a system that lets no file grow beyond this many KiB, as if its disk were full then.
    pub(crate) fn file_kib_max(self, kib: u32) -> Self {
        Self { file_kib_max: Some(kib), ..self }
    }

    /// With this TOML; the addresses are given by flags.
    pub(crate) fn config(self, toml: &str) -> Self {
        Self { config: toml.to_owned(), ..self }
    }

    /// On this store instead of an SQLite file of its own.
    pub(crate) fn store(self, url: &str) -> Self {
        Self { store: Some(url.to_owned()), ..self }
    }

    /// With this clock.
    pub(crate) fn clock(self, clock: &FakeClock) -> Self {
        Self { clock: Some(clock.clone()), ..self }
    }

    /// With this in its environment.
    pub(crate) fn variable(mut self, name: &'static str, value: &str) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// With an admin API behind this token.
    pub(crate) fn token(self, token: &str) -> Self {
        Self { token: Some(token.to_owned()), ..self }
    }

    /// Where no more than this many files and sockets may be open.
    pub(crate) fn open_files_max(self, max: u32) -> Self {
        Self { open_files_max: Some(max), ..self }
    }

    /// Starts it and waits until it is ready.
    pub(crate) async fn start(self) -> Gateway {
        let dir = tempfile::tempdir().unwrap();
        let store = self.store.clone();
        let file = dir.path().join("hapax.db");
        let store = store.unwrap_or_else(|| format!("sqlite:{}", file.display()));
        let mut gateway = Gateway {
            address: free_address(),
            admin: free_address(),
            store,
            child: None,
            setup: self,
            dir,
        };
        for (name, content) in &gateway.setup.files {
            gateway.write(name, content);
        }
        gateway.configure(&gateway.setup.config);
        gateway.run().await;
        gateway
    }
}

/// A gateway; killed when dropped.
pub(crate) struct Gateway {
    pub(crate) address: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) store: String,
    child: Option<Child>,
    setup: Setup,
    dir: TempDir,
}

impl Gateway {
    /// Replaces its file; it takes effect at the next reload or start.
    pub(crate) fn configure(&self, toml: &str) {
        fs::write(self.file(), toml).unwrap();
    }

    /// Has this version run at its next start.
    pub(crate) fn upgrade(&mut self) {
        self.setup.program = program();
    }

    /// Replaces a file beside its configuration.
    pub(crate) fn write(&self, name: &str, content: &str) {
        fs::write(self.dir.path().join(name), content).unwrap();
    }

    /// Where a file beside its configuration is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// What is in a file beside its configuration; nothing if there is none.
    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// Whether there is a file of this name beside its configuration.
    pub(crate) fn exists(&self, name: &str) -> bool {
        self.path(name).exists()
    }

    /// Moves a file beside its configuration.
    pub(crate) fn rename(&self, from: &str, to: &str) {
        fs::rename(self.path(from), self.path(to)).unwrap();
    }

    /// Starts the process, which must not be running, and waits until it is ready.
    pub(crate) async fn run(&mut self) {
        self.spawn();
        let admin = self.admin;
        until("the gateway to be ready", async || {
            let ended = self.child.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none(), "the gateway ended: {}", self.log());
            let answer = ask(admin, "GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n").await;
            answer.is_some_and(|answer| answer.status == 200)
        })
        .await;
    }

    /// Starts the process, which must not be running, and waits for nothing.
    pub(crate) fn spawn(&mut self) {
        assert!(self.child.is_none(), "it is running");
        let log = File::options().create(true).append(true).open(self.dir.path().join("log"));
        let log = log.unwrap();
        let mut command = match (self.setup.file_kib_max, self.setup.open_files_max) {
            (None, None) => Command::new(&self.setup.program),
            (kib, files) => {
                let mut shell = Command::new("sh");
                // The limit is in blocks of 512 bytes; without the trap it would end the process.
                let blocks = kib.map(|kib| format!("trap '' XFSZ; ulimit -f {}; ", kib * 2));
                let files = files.map(|files| format!("ulimit -n {files}; "));
                let limits = [blocks, files].into_iter().flatten().collect::<String>();
                shell.args(["-c", &format!("{limits}exec \"$0\" \"$@\"")]);
                shell.arg(&self.setup.program);
                shell
            }
        };
        command.arg("serve").arg("--config").arg(self.file());
        command.args(&self.setup.args);
        command.args(["--upstream", &self.setup.upstream]);
        command.args(["--listen", &self.address.to_string()]);
        command.args(["--admin", &self.admin.to_string(), "--store", &self.store]);
        command.envs(self.setup.variables.iter().map(|(name, value)| (name, value)));
        if let Some(token) = &self.setup.token {
            command.env("HAPAX_ADMIN_TOKEN", token);
        }
        if let Some(clock) = &self.setup.clock {
            command.envs(clock.environment());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        self.child = Some(command.spawn().unwrap());
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    /// How much memory it has now, in KiB.
    pub(crate) fn memory_kib(&self) -> u64 {
        self.status("VmRSS:")
    }

    /// The most memory it ever had, in KiB.
    pub(crate) fn memory_kib_peak(&self) -> u64 {
        self.status("VmHWM:")
    }

    fn status(&self, name: &str) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// Sends it a signal by name, such as `HUP`.
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.pid().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// Kills it without a chance to say anything.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Waits for it to end by itself, and says whether it ended well.
    pub(crate) async fn ended(&mut self) -> bool {
        let mut child = self.child.take().unwrap();
        let mut status = None;
        until("the gateway to end", async || {
            status = child.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap().success()
    }

    /// What it has said so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("gateway.toml")
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.kill();
    }
}
