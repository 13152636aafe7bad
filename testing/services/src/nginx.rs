//! nginx: a proxy in front of servers, on a free loopback port.

use std::{net::SocketAddr, path::Path};

use crate::{
    error::ServiceError,
    proxy::{BalancedServer, ProxyProgram, RunningProxy, placed},
};

const PROGRAM: ProxyProgram = ProxyProgram {
    server: "nginx",
    name: "nginx",
    package: "nginx-light",
    remedy: "install it (Debian: `apt-get install -y nginx-light`) or put `nginx` on the PATH",
};

/// A running proxy. Dropping it stops it and removes its files.
#[derive(Debug)]
pub struct ReverseProxy(RunningProxy);

impl ReverseProxy {
    /// Starts one with this part of `http { }`, moved in front of these servers, installing nginx first if need be.
    ///
    /// When it returns, it accepts connections.
    pub fn start(configuration: &str, servers: &[BalancedServer; 2]) -> Result<Self, ServiceError> {
        let written = |dir: &Path, port| Ok(whole_file(dir, &placed(configuration, port, servers)));
        PROGRAM.start(&["-e", "stderr", "-c"], written).map(Self)
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }
}

/// A whole file around a part of `http { }`, which keeps everything in its own directory.
fn whole_file(dir: &Path, part: &str) -> String {
    let dir = dir.display();
    // As root, its workers would be somebody else, who may not look into the directory.
    let user = if rustix::process::geteuid().is_root() { "user root;\n" } else { "" };
    let kinds = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let places = kinds.map(|kind| format!("    {kind}_temp_path {dir}/{kind};\n")).concat();
    format!(
        "{user}daemon off;\nworker_processes 1;\npid {dir}/pid;\nerror_log stderr;\nevents {{ }}\n\
         http {{\n    access_log off;\n{places}{part}}}\n"
    )
}
