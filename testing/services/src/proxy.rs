//! What proxies have in common: a configuration as it is handed out, in front of a test's own servers.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpStream},
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
    process::{Process, StopStep},
    programs,
};

/// A server behind a proxy.
#[derive(Debug, Clone, Copy)]
pub struct BalancedServer {
    /// Where requests are sent.
    pub address: SocketAddr,
    /// Where `GET /readyz` says whether it may be sent any.
    pub health: SocketAddr,
}

/// The places of clients, and of the two servers with their ports for operators, in what is handed out.
const CLIENTS: &str = "127.0.0.1:8000";
const SERVERS: [(&str, &str); 2] =
    [("127.0.0.1:8080", "check port 8081"), ("127.0.0.1:8090", "check port 8091")];

/// This configuration with nothing but its addresses changed: clients come to `port`, and are sent to these servers.
pub(crate) fn placed(configuration: &str, port: u16, servers: &[BalancedServer; 2]) -> String {
    let mut text = configuration.replace(CLIENTS, &format!("127.0.0.1:{port}"));
    for ((address, health), server) in SERVERS.into_iter().zip(servers) {
        text = text.replace(address, &server.address.to_string());
        text = text.replace(health, &format!("check port {}", server.health.port()));
    }
    text
}

const READY_LIMIT: Duration = Duration::from_secs(30);
const STOP: [StopStep; 2] =
    [StopStep { signal: Signal::TERM, patience: Duration::from_secs(10) }, StopStep::KILL];

/// A program that stands in front of servers, and the Debian package that has it.
pub(crate) struct ProxyProgram {
    pub(crate) server: &'static str,
    pub(crate) name: &'static str,
    pub(crate) package: &'static str,
    pub(crate) remedy: &'static str,
}

impl ProxyProgram {
    /// Starts it with these arguments and the file that `written` makes for a port, installing it first if need be.
    ///
    /// When it returns, it accepts connections on that port.
    pub(crate) fn start(
        &self,
        args: &[&str],
        mut written: impl FnMut(&Path, u16) -> Result<String, ServiceError>,
    ) -> Result<RunningProxy, ServiceError> {
        let program = self.find_or_install()?;
        let dir = tempfile::Builder::new().prefix("hapax-proxy-").tempdir();
        let dir = dir.map_err(ServiceError::io("make a temporary directory"))?;
        let (process, port) = ports::until_free(|| {
            let [port] = ports::free()?;
            let settings = dir.path().join("settings");
            fs::write(&settings, written(dir.path(), port)?)
                .map_err(ServiceError::io(format!("write {}", settings.display())))?;
            let mut command = Command::new(&program);
            command.args(args).arg(settings);
            let mut process = Process::spawn(self.server, &mut command, &dir.path().join("log"))?;
            let accepts = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
            let ready = process.wait_until_ready(READY_LIMIT, accepts);
            if ready.is_err() {
                // The error of the start is the one to tell; a failing stop would only hide it.
                let _ = process.stop(&STOP);
            }
            ready.map(|()| (process, port))
        })?;
        let address = (Ipv4Addr::LOCALHOST, port).into();
        Ok(RunningProxy { process, address, _dir: dir })
    }

    fn find_or_install(&self) -> Result<PathBuf, ServiceError> {
        let find = || programs::find(self.name, &["/usr/sbin"]);
        if let Some(program) = find() {
            return Ok(program);
        }
        debian::install(self.server, self.package, self.remedy)?;
        find().ok_or(ServiceError::Missing { server: self.server, remedy: self.remedy })
    }
}

/// A proxy that runs. Dropping it stops it and removes its files.
#[derive(Debug)]
pub(crate) struct RunningProxy {
    process: Process,
    pub(crate) address: SocketAddr,
    _dir: TempDir,
}

impl Drop for RunningProxy {
    fn drop(&mut self) {
        // Nobody is left to be told, and its files are removed in any case.
        let _ = self.process.stop(&STOP);
    }
}
