//! A server that is measured, in a process of its own.

use std::{
    fs,
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::Command,
    time::Duration,
};

use hapax_services::process::{Process, StopStep};
use rustix::process::Signal;

use super::error::HttpError;
use crate::BenchError;

const READY_LIMIT: Duration = Duration::from_secs(20);
const STEPS: &[StopStep] =
    &[StopStep { signal: Signal::TERM, patience: Duration::from_secs(5) }, StopStep::KILL];

/// A running server on a port of 127.0.0.1. Dropping it stops it.
#[derive(Debug)]
pub(crate) struct Child {
    process: Process,
    pub(crate) port: u16,
}

impl Child {
    /// Starts a server and waits until it accepts connections on this port.
    pub(super) fn start(
        name: &'static str,
        command: &mut Command,
        directory: &Path,
        port: u16,
    ) -> Result<Self, HttpError> {
        let process = Process::spawn(name, command, &directory.join(format!("{name}.log")))?;
        let mut child = Self { process, port };
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        child.process.wait_until_ready(READY_LIMIT, || {
            TcpStream::connect_timeout(&address, READY_LIMIT).is_ok()
        })?;
        Ok(child)
    }

    /// Starts the upstream, which chooses its port itself.
    pub(crate) fn upstream(directory: &Path) -> Result<Self, HttpError> {
        const NAME: &str = "upstream";
        let port_file = directory.join("upstream.port");
        let mut command = this_program()?;
        command.args(["http-upstream", "--port-file"]).arg(&port_file);
        let process = Process::spawn(NAME, &mut command, &directory.join("upstream.log"))?;
        let mut child = Self { process, port: 0 };
        let mut port = None;
        child.process.wait_until_ready(READY_LIMIT, || {
            port = fs::read_to_string(&port_file).ok().and_then(|text| text.parse().ok());
            port.is_some()
        })?;
        child.port = port.unwrap_or_default();
        Ok(child)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(super) fn memory(&self) -> Result<Memory, BenchError> {
        let path = format!("/proc/{}/status", self.pid());
        fs::read_to_string(path).map(|status| Memory::read(&status)).map_err(BenchError::Proc)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Nobody is left to be told, and the figures are taken.
        let _ = self.process.stop(STEPS);
    }
}

/// What one process holds of the machine's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Memory {
    pub(super) resident_kib: u64,
    /// The most it ever held.
    pub(super) peak_kib: u64,
}

impl Memory {
    /// From `/proc/PID/status`.
    fn read(status: &str) -> Self {
        let kib = |name: &str| {
            let value = status.lines().find_map(|line| line.strip_prefix(name));
            let digits = value.and_then(|value| value.split_whitespace().next());
            digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
        };
        Self { resident_kib: kib("VmRSS:"), peak_kib: kib("VmHWM:") }
    }
}

/// This program, to be started again.
fn this_program() -> Result<Command, HttpError> {
    std::env::current_exe().map(Command::new).map_err(HttpError::OwnFile)
}

/// A port that nobody listens on now.
pub(super) fn free_port() -> Result<u16, HttpError> {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    port.map(|address| address.port()).map_err(HttpError::Port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_from_what_the_system_says() {
        let status = "Name:\thapax\nVmHWM:\t   51200 kB\nVmRSS:\t   40960 kB\nThreads:\t4\n";
        assert_eq!(Memory::read(status), Memory { resident_kib: 40_960, peak_kib: 51_200 });
        assert_eq!(Memory::read(""), Memory { resident_kib: 0, peak_kib: 0 });
    }
}
