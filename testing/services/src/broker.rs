//! What all message brokers here have in common: stopped, killed, frozen and started again, on the
//! same port and files.

use std::{
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::Command,
    time::Duration,
};

use rustix::process::Signal;
use tempfile::TempDir;

use crate::{
    error::ServiceError,
    ports,
    process::{Process, StopStep},
    roster::{DetachedServer, Service},
};

const READY_LIMIT: Duration = Duration::from_secs(120);

/// A running message broker. Dropping it stops it and removes its files.
///
/// It listens on 127.0.0.1 alone and lets in everybody who reaches it.
#[derive(Debug)]
pub struct Broker {
    launch: Launch,
    processes: Vec<Process>,
    dir: TempDir,
}

/// How a broker is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It is asked to end, and writes out what it holds.
    Orderly,
    /// It is killed without a warning, as in a crash; the next start recovers.
    Kill,
}

/// All that it takes to start a broker, and to start it again.
#[derive(Debug)]
pub(crate) struct Launch {
    pub(crate) service: Service,
    /// In the order they are started; the last is the broker itself.
    pub(crate) commands: Vec<Command>,
    pub(crate) port: u16,
    pub(crate) url: String,
    /// Whether the broker is ready, by what it has logged since it was started.
    pub(crate) ready: fn(&str) -> bool,
}

impl Broker {
    /// Starts what `prepare` makes of an empty directory.
    pub(crate) fn start(
        service: Service,
        prepare: impl Fn(&Path) -> Result<Launch, ServiceError>,
    ) -> Result<Self, ServiceError> {
        ports::until_free(|| {
            let prefix = format!("hapax-{}-", service.name());
            let dir = tempfile::Builder::new().prefix(&prefix).tempdir();
            let dir = dir.map_err(ServiceError::io("make a temporary directory"))?;
            let launch = prepare(dir.path())?;
            let mut broker = Self { launch, processes: Vec::new(), dir };
            broker.resume().map(|()| broker)
        })
    }

    /// Where clients connect, as a URL; it stays the same as long as this value lives.
    pub fn url(&self) -> &str {
        &self.launch.url
    }

    /// Where clients connect, for those that want no URL.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.launch.port).into()
    }

    /// The broker's process id; `None` while it is stopped.
    pub fn pid(&self) -> Option<u32> {
        self.processes.last().map(Process::pid)
    }

    /// The ids of all its processes, the broker's own last; none while it is stopped.
    pub fn pids(&self) -> Vec<u32> {
        self.processes.iter().map(Process::pid).collect()
    }

    /// Where it keeps its settings, its log and its data.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Stops it and keeps its files; does nothing if it is stopped already.
    pub fn stop(&mut self, mode: Mode) -> Result<(), ServiceError> {
        if mode == Mode::Orderly {
            // Whoever is frozen cannot be asked.
            self.unpause();
        }
        while let Some(process) = self.processes.last_mut() {
            process.stop(mode.steps())?;
            self.processes.pop();
        }
        Ok(())
    }

    /// Starts it again on the same port and files; does nothing if it is running.
    ///
    /// When it returns, the broker serves clients.
    pub fn resume(&mut self) -> Result<(), ServiceError> {
        if !self.processes.is_empty() {
            return Ok(());
        }
        let resumed = self.launch_all();
        if resumed.is_err() {
            // The error of the start is the one to tell; a failing stop would only hide it.
            let _ = self.stop(Mode::Kill);
        }
        resumed
    }

    /// Stops it as told, then starts it again on the same port and files.
    pub fn restart(&mut self, mode: Mode) -> Result<(), ServiceError> {
        self.stop(mode)?;
        self.resume()
    }

    /// Freezes it: connections stay open, and nobody answers until [`Self::unpause`].
    pub fn pause(&self) -> Result<(), ServiceError> {
        self.processes.last().map_or(Ok(()), Process::freeze)
    }

    /// Lets it go on where it was frozen.
    pub fn unpause(&self) {
        self.processes.iter().for_each(Process::thaw);
    }

    /// Leaves the broker running after this program has ended.
    pub(crate) fn detach(mut self) -> DetachedServer {
        self.dir.disable_cleanup(true);
        let processes = std::mem::take(&mut self.processes);
        let pids = processes.iter().map(Process::pid).collect();
        let (service, url) = (self.launch.service, self.launch.url.clone());
        DetachedServer { service, url, pids, dir: self.dir.path().to_owned() }
    }

    fn launch_all(&mut self) -> Result<(), ServiceError> {
        let log = self.dir.path().join("server.log");
        for command in &mut self.launch.commands {
            self.processes.push(Process::spawn(self.launch.service.title(), command, &log)?);
        }
        let Some(broker) = self.processes.last_mut() else { return Ok(()) };
        let (ready, server) = (self.launch.ready, self.launch.service.title());
        // Not every broker ends when its port is taken.
        let enough = |log: &str| ready(log) || ports::taken(log);
        let log = broker.wait_until_logged(READY_LIMIT, enough)?;
        if ready(&log) { Ok(()) } else { Err(ServiceError::PortTaken { server }) }
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // Nobody is left to be told, and its files are removed in any case.
        let _ = self.stop(Mode::Kill);
    }
}

impl Mode {
    pub(crate) fn steps(self) -> &'static [StopStep] {
        const ORDERLY: StopStep =
            StopStep { signal: Signal::TERM, patience: Duration::from_secs(30) };
        match self {
            Self::Orderly => &[ORDERLY, StopStep::KILL],
            Self::Kill => &[StopStep::KILL],
        }
    }
}
