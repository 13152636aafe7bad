//! Runs programs within time limits: spawn, wait until ready, stop by steps.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};

use crate::{error::ServiceError, ports};

/// A server that this program started. Dropping it leaves the process running.
#[derive(Debug)]
pub struct Process {
    server: &'static str,
    child: Child,
    log: PathBuf,
    /// Where in the log this process began.
    logged_before: u64,
}

/// One step towards the end of a process: a signal, and how long it is given to work.
#[derive(Debug, Clone, Copy)]
pub struct StopStep {
    /// What is sent.
    pub signal: Signal,
    /// How long the process is given before the next step.
    pub patience: Duration,
}

impl StopStep {
    /// An end as in a crash. Nothing outlives it, but on a busy disk a process may first have to finish a write.
    pub const KILL: Self = Self { signal: Signal::KILL, patience: Duration::from_secs(60) };
}

impl Process {
    /// Starts `command` in a process group of its own, with its output appended to `log`.
    pub fn spawn(
        server: &'static str,
        command: &mut Command,
        log: &Path,
    ) -> Result<Self, ServiceError> {
        // A group of its own, so that an interrupt at the terminal reaches us alone and we stop it.
        redirect(command, log)?.process_group(0);
        let logged_before = fs::metadata(log).map_or(0, |log| log.len());
        let child = command.spawn().map_err(ServiceError::io(format!("start {server}")))?;
        Ok(Self { server, child, log: log.to_owned(), logged_before })
    }

    /// The process's id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until `ready` says so; an early end or the limit is an error with the log's end.
    pub fn wait_until_ready(
        &mut self,
        limit: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> Result<(), ServiceError> {
        let deadline = WaitDeadline::after(limit);
        loop {
            if let Some(status) = ended(&mut self.child)? {
                return Err(self.died(status));
            }
            if ready() {
                return Ok(());
            }
            if !deadline.pause() {
                let what = format!("starting {}", self.server);
                return Err(ServiceError::TooSlow { what, limit, log: tail(&self.log) });
            }
        }
    }

    /// Waits until `enough` was logged since this process was started, and returns that.
    pub fn wait_until_logged(
        &mut self,
        limit: Duration,
        enough: impl Fn(&str) -> bool,
    ) -> Result<String, ServiceError> {
        let (log, from) = (self.log.clone(), self.logged_before);
        let mut logged = String::new();
        self.wait_until_ready(limit, || {
            // A log that cannot be read says nothing; the limit tells.
            logged = read_from(&log, from).unwrap_or_default();
            enough(&logged)
        })?;
        Ok(logged)
    }

    /// Freezes the process; when it returns, none of its threads goes on.
    pub fn freeze(&self) -> Result<(), ServiceError> {
        const LIMIT: Duration = Duration::from_secs(30);
        send(self.pid(), Signal::STOP);
        let deadline = WaitDeadline::after(LIMIT);
        while !self.is_frozen()? {
            if !deadline.pause() {
                let what = format!("freezing {}", self.server);
                return Err(ServiceError::TooSlow { what, limit: LIMIT, log: tail(&self.log) });
            }
        }
        Ok(())
    }

    /// Lets a frozen process go on; does nothing to others.
    pub fn thaw(&self) {
        send(self.pid(), Signal::CONT);
    }

    /// Takes the steps one after the other until the process has ended.
    pub fn stop(&mut self, steps: &[StopStep]) -> Result<(), ServiceError> {
        let pid = self.pid();
        take_steps(self.server, pid, steps, || Ok(ended(&mut self.child)?.is_some()))
    }

    fn died(&self, status: ExitStatus) -> ServiceError {
        let server = self.server;
        if ports::taken(&read_from(&self.log, self.logged_before).unwrap_or_default()) {
            return ServiceError::PortTaken { server };
        }
        ServiceError::Died { server, status: status.to_string(), log: tail(&self.log) }
    }

    fn is_frozen(&self) -> Result<bool, ServiceError> {
        let Some(pid) = pid_of(self.pid()) else { return Ok(false) };
        // Looks and takes nothing: the end of the process is left to whoever waits for it.
        let look = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let seen = waitid(WaitId::Pid(pid), look);
        let seen = seen.map_err(|error| ServiceError::io("look after a process")(error.into()))?;
        Ok(seen.is_some())
    }
}

/// A process that another program started, recognised by a path on its command line.
///
/// A bare process id may have been given to somebody else meanwhile; the path has not.
#[derive(Debug, Clone)]
pub struct LeftoverProcess {
    /// What it is, for messages.
    pub server: &'static str,
    /// Its process id.
    pub pid: u32,
    /// A path that only its command line names.
    pub mark: PathBuf,
}

impl LeftoverProcess {
    /// Whether it still runs.
    pub fn is_running(&self) -> bool {
        let mark = self.mark.to_string_lossy();
        !mark.is_empty() && command_line(self.pid).contains(mark.as_ref())
    }

    /// Takes the steps one after the other until the process has ended; does nothing if it already
    /// has.
    pub fn stop(&self, steps: &[StopStep]) -> Result<(), ServiceError> {
        take_steps(self.server, self.pid, steps, || Ok(!self.is_running()))
    }
}

/// Runs `command` to its end and returns what it printed, or the error that says why not.
pub fn run(command: &mut Command, limit: Duration) -> Result<String, ServiceError> {
    let name = format!("{command:?}");
    let log = tempfile::NamedTempFile::new().map_err(ServiceError::io("make a temporary file"))?;
    redirect(command, log.path())?;
    let mut child = command.spawn().map_err(ServiceError::io(format!("run {name}")))?;
    let deadline = WaitDeadline::after(limit);
    let status = loop {
        if let Some(status) = ended(&mut child)? {
            break status;
        }
        if !deadline.pause() {
            child.kill().map_err(ServiceError::io(format!("stop {name}")))?;
            child.wait().map_err(ServiceError::io(format!("stop {name}")))?;
            return Err(ServiceError::TooSlow { what: name, limit, log: tail(log.path()) });
        }
    };
    if !status.success() {
        let (status, output) = (status.to_string(), tail(log.path()));
        return Err(ServiceError::CommandFailed { command: name, status, output });
    }
    fs::read_to_string(log.path()).map_err(ServiceError::io(format!("read what {name} printed")))
}

/// The last few kilobytes of a log, for an error message; what cannot be read is said so.
pub fn tail(log: &Path) -> String {
    const TAIL_BYTES: u64 = 4 << 10;
    let len = fs::metadata(log).map_or(0, |log| log.len());
    let read = read_from(log, len.saturating_sub(TAIL_BYTES));
    read.unwrap_or_else(|error| format!("(no log: {error})"))
}

fn read_from(log: &Path, from: u64) -> io::Result<String> {
    const BYTES_MAX: u64 = 1 << 20;
    let mut file = File::open(log)?;
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(BYTES_MAX).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

pub(crate) fn send(pid: u32, signal: Signal) {
    if let Some(target) = pid_of(pid) {
        // It may end between a look and the signal; the next look tells.
        let _ = kill_process(target, signal);
    }
}

fn redirect<'a>(command: &'a mut Command, log: &Path) -> Result<&'a mut Command, ServiceError> {
    let out = File::options().append(true).create(true).open(log);
    let out = out.map_err(ServiceError::io(format!("open {}", log.display())))?;
    let err = out.try_clone().map_err(ServiceError::io(format!("share {}", log.display())))?;
    Ok(command.stdin(Stdio::null()).stdout(out).stderr(err))
}

fn ended(child: &mut Child) -> Result<Option<ExitStatus>, ServiceError> {
    child.try_wait().map_err(ServiceError::io("look after a process"))
}

fn take_steps(
    server: &'static str,
    pid: u32,
    steps: &[StopStep],
    mut gone: impl FnMut() -> Result<bool, ServiceError>,
) -> Result<(), ServiceError> {
    for step in steps {
        if gone()? {
            return Ok(());
        }
        send(pid, step.signal);
        let deadline = WaitDeadline::after(step.patience);
        while deadline.pause() {
            if gone()? {
                return Ok(());
            }
        }
    }
    let limit = steps.iter().map(|step| step.patience).sum();
    Err(ServiceError::TooSlow { what: format!("stopping {server}"), limit, log: String::new() })
}

fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

fn command_line(pid: u32) -> String {
    let args = match fs::read(format!("/proc/{pid}/cmdline")) {
        Ok(args) => args,
        Err(_) if Path::new("/proc/self").exists() => Vec::new(),
        Err(_) => {
            let ps = Command::new("ps").args(["-o", "args=", "-p", &pid.to_string()]).output();
            ps.map(|output| output.stdout).unwrap_or_default()
        }
    };
    String::from_utf8_lossy(&args).replace('\0', " ")
}

pub(crate) struct WaitDeadline(Instant);

impl WaitDeadline {
    #[expect(clippy::disallowed_methods, reason = "a real process is waited for in real time")]
    pub(crate) fn after(limit: Duration) -> Self {
        Self(Instant::now() + limit)
    }

    /// Waits a moment; false once the time is up.
    #[expect(clippy::disallowed_methods, reason = "a real process is waited for in real time")]
    pub(crate) fn pause(&self) -> bool {
        const POLL: Duration = Duration::from_millis(5);
        let left = self.0.saturating_duration_since(Instant::now());
        thread::sleep(left.min(POLL));
        !left.is_zero()
    }
}
