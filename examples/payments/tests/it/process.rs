//! A server in a process of its own.

use std::{
    fs::OpenOptions,
    io::{BufRead, BufReader},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use tokio::time::{sleep, timeout};

/// A process that is killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    /// Where it listens; empty if it died before it did.
    pub(crate) address: String,
}

const SIGKILL: i32 = 9;
const DEATH_LIMIT: Duration = Duration::from_secs(20);

impl Process {
    /// Starts it, and waits until it listens or is dead. What it complains about goes to the log.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Self {
        let log = OpenOptions::new().create(true).append(true).open(log).unwrap();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("listening on ").unwrap_or_default().to_owned();
        Self { child, address }
    }

    /// Kills it with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        assert_eq!(self.child.wait().unwrap().signal(), Some(SIGKILL));
    }

    /// Waits until it was killed where it was told to be.
    pub(crate) async fn die(mut self) {
        let died = async {
            loop {
                if let Some(status) = self.child.try_wait().unwrap() {
                    return status;
                }
                sleep(Duration::from_millis(2)).await;
            }
        };
        let status: ExitStatus = timeout(DEATH_LIMIT, died).await.expect("it should have died");
        assert_eq!(status.signal(), Some(SIGKILL), "it ended by itself: {status}");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may be dead already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
