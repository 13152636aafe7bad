//! HAProxy: a load balancer in front of servers, on a free loopback port.

use std::{
    fmt::Write as _,
    fs,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::PathBuf,
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

const SERVER: &str = "HAProxy";
const REMEDY: &str =
    "install it (Debian: `apt-get install -y haproxy`) or put `haproxy` on the PATH";

const READY_LIMIT: Duration = Duration::from_secs(30);
const STOP: [StopStep; 2] =
    [StopStep { signal: Signal::TERM, patience: Duration::from_secs(10) }, StopStep::KILL];

/// A running load balancer. Dropping it stops it and removes its files.
#[derive(Debug)]
pub struct LoadBalancer {
    process: Process,
    address: SocketAddr,
    statistics: SocketAddr,
    _dir: TempDir,
}

/// A server behind it.
#[derive(Debug, Clone, Copy)]
pub struct BalancedServer {
    /// Where requests are sent.
    pub address: SocketAddr,
    /// Where `GET /readyz` says whether it may be sent any.
    pub health: SocketAddr,
}

impl LoadBalancer {
    /// Starts one in front of these servers, which it asks ten times a second whether they are ready,
    /// installing HAProxy first if need be.
    ///
    /// When it returns, it accepts connections.
    pub fn start(servers: &[BalancedServer]) -> Result<Self, ServiceError> {
        let program = find_or_install()?;
        let dir = tempfile::Builder::new().prefix("hapax-haproxy-").tempdir();
        let dir = dir.map_err(ServiceError::io("make a temporary directory"))?;
        ports::until_free(|| {
            let [port, statistics] = ports::free()?;
            let settings = dir.path().join("haproxy.cfg");
            fs::write(&settings, configuration(port, statistics, servers))
                .map_err(ServiceError::io(format!("write {}", settings.display())))?;
            let mut command = Command::new(&program);
            command.args(["-db", "-f"]).arg(&settings);
            let mut process =
                Process::spawn(SERVER, &mut command, &dir.path().join("haproxy.log"))?;
            let accepts = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
            let ready = process.wait_until_ready(READY_LIMIT, accepts);
            if ready.is_err() {
                // The error of the start is the one to tell; a failing stop would only hide it.
                let _ = process.stop(&STOP);
            }
            ready.map(|()| (process, port, statistics))
        })
        .map(|(process, port, statistics)| Self {
            process,
            address: (Ipv4Addr::LOCALHOST, port).into(),
            statistics: (Ipv4Addr::LOCALHOST, statistics).into(),
            _dir: dir,
        })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Whether it sends requests to the server with this number, counted from zero.
    pub fn is_up(&self, number: usize) -> Result<bool, ServiceError> {
        let asked = || -> std::io::Result<String> {
            let mut socket = TcpStream::connect(self.statistics)?;
            socket.write_all(b"GET /;csv HTTP/1.0\r\n\r\n")?;
            let mut page = String::new();
            socket.read_to_string(&mut page)?;
            Ok(page)
        };
        let page = asked().map_err(ServiceError::io("ask HAProxy about its servers"))?;
        let line = page.lines().find(|line| line.starts_with(&format!("servers,s{number},")));
        Ok(line.is_some_and(|line| line.split(',').nth(STATUS_COLUMN) == Some("UP")))
    }
}

/// Where its statistics have the status of a server.
const STATUS_COLUMN: usize = 17;

impl Drop for LoadBalancer {
    fn drop(&mut self) {
        // Nobody is left to be told, and its files are removed in any case.
        let _ = self.process.stop(&STOP);
    }
}

fn configuration(port: u16, statistics: u16, servers: &[BalancedServer]) -> String {
    let mut text = format!(
        "defaults\n  mode http\n  timeout connect 5s\n  timeout client 60s\n  timeout server 60s\n\n\
         listen statistics\n  bind 127.0.0.1:{statistics}\n  stats enable\n  stats uri /\n\n\
         frontend clients\n  bind 127.0.0.1:{port}\n  default_backend servers\n\n\
         backend servers\n  option httpchk GET /readyz\n  http-check expect status 200\n"
    );
    for (number, BalancedServer { address, health }) in servers.iter().enumerate() {
        let (ip, port) = (health.ip(), health.port());
        let _ = writeln!(
            text,
            "  server s{number} {address} check inter 100ms fall 1 rise 1 addr {ip} port {port}"
        );
    }
    text
}

fn find_or_install() -> Result<PathBuf, ServiceError> {
    let find = || programs::find("haproxy", &["/usr/sbin"]);
    if let Some(program) = find() {
        return Ok(program);
    }
    debian::install(SERVER, "haproxy", REMEDY)?;
    find().ok_or(ServiceError::Missing { server: SERVER, remedy: REMEDY })
}
