//! The gateway's process: spawned, waited for, killed.

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::Duration,
};

use tokio::time::Instant;

/// How often it is looked whether the gateway is ready.
const POLL: Duration = Duration::from_millis(5);
/// As much of the end of a log as an error shows.
const TAIL_BYTES: u64 = 4 << 10;

/// A gateway that this program started. Dropping it leaves the process running.
#[derive(Debug)]
pub(super) struct GatewayProcess {
    child: Child,
    log: PathBuf,
}

/// Why there is no such process.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProcessError {
    #[error("it cannot be started")]
    Start(#[source] io::Error),
    #[error("it ended before it was ready ({status}); the end of its log:\n{log}")]
    Died { status: ExitStatus, log: String },
    #[error("starting it took longer than {limit:?}; the end of its log:\n{log}")]
    TooSlow { limit: Duration, log: String },
    #[error("it cannot be looked after")]
    Lost(#[source] io::Error),
}

impl GatewayProcess {
    /// Starts `command`, with its output appended to `log`.
    pub(super) fn spawn(command: &mut Command, log: &Path) -> Result<Self, ProcessError> {
        let out = File::options().append(true).create(true).open(log);
        let out = out.map_err(ProcessError::Start)?;
        let err = out.try_clone().map_err(ProcessError::Start)?;
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        // A group of its own, so that an interrupt at the terminal reaches us alone and we stop it.
        let child = command.process_group(0).spawn().map_err(ProcessError::Start)?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Waits until `ready` says so; an early end or the limit is an error with the log's end.
    pub(super) fn wait_until_ready(
        &mut self,
        limit: Duration,
        mut ready: impl FnMut() -> bool,
    ) -> Result<(), ProcessError> {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().map_err(ProcessError::Lost)? {
                return Err(ProcessError::Died { status, log: tail(&self.log) });
            }
            if ready() {
                return Ok(());
            }
            if began.elapsed() >= limit {
                return Err(ProcessError::TooSlow { limit, log: tail(&self.log) });
            }
            thread::sleep(POLL);
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it without a warning, unless it has ended already; when it returns, the process is gone.
    pub(super) fn kill(&mut self) -> Result<(), ProcessError> {
        self.child.kill().and_then(|()| self.child.wait()).map_err(ProcessError::Lost)?;
        Ok(())
    }
}

/// The end of a log, for an error message; what cannot be read is said so.
fn tail(log: &Path) -> String {
    let read = || {
        let from = fs::metadata(log)?.len().saturating_sub(TAIL_BYTES);
        let mut file = File::open(log)?;
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>(String::from_utf8_lossy(&bytes).into_owned())
    };
    read().unwrap_or_else(|error| format!("(no log: {error})"))
}
