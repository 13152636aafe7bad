//! Starts a victim, strikes it, and sees how it ended.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    os::unix::process::ExitStatusExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::{
    error::CrashError,
    victim::{Orders, READY},
};

/// A victim that was started.
#[derive(Debug)]
pub(crate) struct Victim {
    child: Child,
    log: PathBuf,
}

/// How a victim ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    Killed,
    Ended,
    Failed(String),
}

impl Victim {
    /// Starts one. When this returns it is at work, or has died already.
    pub(crate) fn start(program: &Path, orders: &Orders, log: PathBuf) -> Result<Self, CrashError> {
        Self::start_command(orders.command(program), log)
    }

    /// The same by any command. What it prints is its first sign of life, and may not come.
    pub(crate) fn start_command(mut command: Command, log: PathBuf) -> Result<Self, CrashError> {
        let errors = File::create(&log).map_err(CrashError::io("make a log"))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        let mut child = command.spawn().map_err(CrashError::io("start a victim"))?;
        let mut line = String::new();
        if let Some(output) = child.stdout.take() {
            let read = BufReader::new(output).read_line(&mut line);
            read.map_err(CrashError::io("listen to a victim"))?;
        }
        debug_assert!(line.is_empty() || line.trim() == READY);
        Ok(Self { child, log })
    }

    /// Kills it after a while, unless it has ended before.
    pub(crate) fn kill_after(&mut self, delay: Duration) -> Result<(), CrashError> {
        thread::sleep(delay);
        self.child.kill().map_err(CrashError::io("kill a victim"))
    }

    /// Stops it after a while, as a machine under pressure would, and lets it go on later.
    pub(crate) fn sleep_after(&self, delay: Duration, sleep: Duration) -> Result<(), CrashError> {
        thread::sleep(delay);
        self.signal(Signal::STOP)?;
        thread::sleep(sleep);
        self.signal(Signal::CONT)
    }

    fn signal(&self, signal: Signal) -> Result<(), CrashError> {
        // Not yet waited for, so the id is still its own even if it has ended.
        let sent = kill_process(Pid::from_child(&self.child), signal);
        sent.map_err(|error| CrashError::io("signal a victim")(error.into()))
    }

    /// Waits for its end. A panic anywhere in it counts as failure, even if it was killed later.
    pub(crate) fn wait(mut self) -> Result<Fate, CrashError> {
        let status = self.child.wait().map_err(CrashError::io("wait for a victim"))?;
        let said = fs::read_to_string(&self.log).map_err(CrashError::io("read a log"))?;
        if said.contains("panicked at") {
            return Ok(Fate::Failed(said));
        }
        Ok(match status.signal() {
            Some(signal) if signal == Signal::KILL.as_raw() => Fate::Killed,
            _ if status.success() => Fate::Ended,
            _ => Fate::Failed(format!("{status}: {}", said.trim())),
        })
    }
}
