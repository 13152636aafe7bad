//! HAProxy: a load balancer in front of servers, on a free loopback port.

use std::{
    io::{Read as _, Write as _},
    net::{Ipv4Addr, SocketAddr, TcpStream},
};

use crate::{
    error::ServiceError,
    ports,
    proxy::{BalancedServer, ProxyProgram, RunningProxy, placed},
};

const PROGRAM: ProxyProgram = ProxyProgram {
    server: "HAProxy",
    name: "haproxy",
    package: "haproxy",
    remedy: "install it (Debian: `apt-get install -y haproxy`) or put `haproxy` on the PATH",
};

/// A running load balancer. Dropping it stops it and removes its files.
#[derive(Debug)]
pub struct LoadBalancer {
    proxy: RunningProxy,
    statistics: SocketAddr,
}

impl LoadBalancer {
    /// Starts one with this configuration, moved in front of these servers, installing HAProxy first if need be.
    ///
    /// When it returns, it accepts connections.
    pub fn start(configuration: &str, servers: &[BalancedServer; 2]) -> Result<Self, ServiceError> {
        let mut shown_on = 0;
        let proxy = PROGRAM.start(&["-db", "-f"], |_, port| {
            [shown_on] = ports::free()?;
            Ok(placed(configuration, port, servers) + &statistics(shown_on))
        })?;
        Ok(Self { proxy, statistics: (Ipv4Addr::LOCALHOST, shown_on).into() })
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.proxy.address
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
        let lines = page.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let mut servers = lines.filter(|line| line.get(1).is_some_and(|name| NAMES.contains(name)));
        let status = servers.nth(number).and_then(|line| line.get(STATUS_COLUMN).copied());
        Ok(status == Some("UP"))
    }
}

/// What the file that is handed out calls its servers.
const NAMES: [&str; 2] = ["one", "two"];
/// Where its statistics have the status of a server.
const STATUS_COLUMN: usize = 17;

/// Has it show on this port what it knows of its servers.
fn statistics(port: u16) -> String {
    format!("\nlisten statistics\n    bind 127.0.0.1:{port}\n    stats enable\n    stats uri /\n")
}
