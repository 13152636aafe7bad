//! Starts a victim, strikes it, and sees how it ended.

use std::{
    fs::{self, File},
    io::{BufRead, BufReader},
    os::unix::process::ExitStatusExt,
    path::PathBuf,
    process::{Child, Command, Stdio},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};

use super::Strike;
use crate::{error::CrashError, victim::READY};

/// A victim that was started.
#[derive(Debug)]
pub(crate) struct Victim {
    child: Child,
    log: PathBuf,
}

/// How a victim ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum VictimEnd {
    Killed,
    Ended,
    Failed(String),
}

impl Victim {
    /// Starts one, and waits for its first sign of life, or for its end if it gives none.
    pub(crate) fn start(mut command: Command, log: PathBuf) -> Result<Self, CrashError> {
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

    /// Lets it die of this strike; says how it ended.
    pub(crate) fn die_of(mut self, strike: &Strike) -> Result<VictimEnd, CrashError> {
        match strike {
            Strike::At(_) => {}
            Strike::After(delay) => self.kill_after(*delay)?,
            Strike::Asleep { after, sleep, awake } => {
                self.sleep_after(*after, *sleep)?;
                self.kill_after(*awake)?;
            }
        }
        self.wait()
    }

    /// Kills it after a while, unless it has ended before.
    pub(crate) fn kill_after(&mut self, delay: Duration) -> Result<(), CrashError> {
        thread::sleep(delay);
        self.child.kill().map_err(CrashError::io("kill a victim"))
    }

    /// Stops it after a while, as a machine under pressure would, and lets it go on later.
    fn sleep_after(&self, delay: Duration, sleep: Duration) -> Result<(), CrashError> {
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
    pub(crate) fn wait(mut self) -> Result<VictimEnd, CrashError> {
        let status = self.child.wait().map_err(CrashError::io("wait for a victim"))?;
        let said = fs::read_to_string(&self.log).map_err(CrashError::io("read a log"))?;
        if said.contains("panicked at") {
            return Ok(VictimEnd::Failed(said));
        }
        Ok(match status.signal() {
            Some(signal) if signal == Signal::KILL.as_raw() => VictimEnd::Killed,
            _ if status.success() => VictimEnd::Ended,
            _ => VictimEnd::Failed(format!("{status}: {}", said.trim())),
        })
    }
}
