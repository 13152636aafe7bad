//! Prometheus: `promtool`, which checks rules without a server, and a server of its own that scrapes.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr, TcpStream},
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    debian,
    error::ServiceError,
    ports,
    process::{Process, StopStep},
    programs,
};

const TOOL: &str = "promtool";
const SERVER: &str = "prometheus";
const REMEDY: &str = "install Prometheus (Debian: `apt-get install -y prometheus`) \
                      or put `promtool` and `prometheus` on the PATH";

const READY_LIMIT: Duration = Duration::from_secs(60);

/// Where `promtool` is, after installing it if need be.
pub fn promtool() -> Result<PathBuf, ServiceError> {
    find_or_install(TOOL)
}

fn find_or_install(program: &'static str) -> Result<PathBuf, ServiceError> {
    let find = || programs::find(program, &[]);
    if let Some(program) = find() {
        return Ok(program);
    }
    debian::install(program, "prometheus", REMEDY)?;
    find().ok_or(ServiceError::Missing { server: program, remedy: REMEDY })
}

/// A running Prometheus that scrapes every second. Dropping it stops it and removes its files.
#[derive(Debug)]
pub struct PrometheusServer {
    process: Process,
    _dir: TempDir,
    port: u16,
}

impl PrometheusServer {
    /// Starts one that scrapes these targets under the job `hapax`, installing Prometheus first if need be.
    pub fn start(targets: &[SocketAddr]) -> Result<Self, ServiceError> {
        Self::with_rules(targets, "groups: []\n")
    }

    /// The same, which judges by this file of rules every second.
    pub fn with_rules(targets: &[SocketAddr], rules: &str) -> Result<Self, ServiceError> {
        let program = find_or_install(SERVER)?;
        ports::until_free(|| Self::launch(&program, targets, rules))
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    fn launch(program: &Path, targets: &[SocketAddr], rules: &str) -> Result<Self, ServiceError> {
        let dir = tempfile::Builder::new().prefix("hapax-prometheus-").tempdir();
        let dir = dir.map_err(ServiceError::io("make a temporary directory"))?;
        let [port] = ports::free()?;
        let targets: Vec<_> = targets.iter().map(|target| format!("\"{target}\"")).collect();
        let config = format!(
            "global: {{ scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s }}\n\
             rule_files: [rules.yml]\nscrape_configs:\n  - job_name: hapax\n    \
             static_configs: [{{ targets: [{}] }}]\n",
            targets.join(", ")
        );
        let file = dir.path().join("prometheus.yml");
        for (file, text) in [(&file, config.as_str()), (&dir.path().join("rules.yml"), rules)] {
            fs::write(file, text).map_err(ServiceError::io(format!("write {}", file.display())))?;
        }
        let mut command = Command::new(program);
        command.arg(format!("--config.file={}", file.display()));
        command.arg(format!("--storage.tsdb.path={}", dir.path().join("data").display()));
        command.arg(format!("--web.listen-address=127.0.0.1:{port}"));
        let process = Process::spawn(SERVER, &mut command, &dir.path().join("server.log"))?;
        // Made before it is ready, so that dropping it stops the process in any case.
        let mut server = Self { process, _dir: dir, port };
        let address = server.address();
        server.process.wait_until_ready(READY_LIMIT, || TcpStream::connect(address).is_ok())?;
        Ok(server)
    }
}

impl Drop for PrometheusServer {
    fn drop(&mut self) {
        // Nobody is left to be told, and its files are removed in any case.
        let _ = self.process.stop(&[StopStep::KILL]);
    }
}
