//! What OpenTelemetry tells a collector: its own receiver, over gRPC and HTTP, which writes down what comes.

use std::{
    fs,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
    process::Command,
    time::Duration,
};

use tempfile::TempDir;

use crate::{
    error::ServiceError,
    go::GoProgram,
    ports,
    process::{Process, StopStep},
};

const READY_LIMIT: Duration = Duration::from_secs(30);

/// The receiver of the collector alone: the whole of it takes minutes to build.
const COLLECTOR: GoProgram = GoProgram {
    name: "collector",
    cached: "otlpreceiver-0.161.0",
    files: &[
        ("go.mod", include_str!("collector/go.mod")),
        ("go.sum", include_str!("collector/go.sum")),
        ("main.go", include_str!("collector/main.go")),
    ],
    package: ".",
    remedy: "it needs Go 1.26 that reaches its module proxy",
};

/// A running collector. Dropping it stops it and removes what it was told.
#[derive(Debug)]
pub struct CollectorServer {
    process: Process,
    dir: TempDir,
    grpc: u16,
    http: u16,
}

impl CollectorServer {
    /// Starts one that was told nothing yet, building it first if need be.
    pub fn start() -> Result<Self, ServiceError> {
        let program = COLLECTOR.find_or_build()?;
        ports::until_free(|| Self::launch(&program))
    }

    /// Where it takes OTLP over gRPC.
    pub fn grpc(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.grpc).into()
    }

    /// Where it takes OTLP over HTTP.
    pub fn http(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.http).into()
    }

    /// What it was told so far: OTLP in JSON, a message on each line.
    pub fn told(&self) -> String {
        let told = fs::read_to_string(self.dir.path().join("told")).unwrap_or_default();
        // The last line may still be on its way.
        told.rsplit_once('\n').map(|(whole, _)| whole.to_owned()).unwrap_or_default()
    }

    fn launch(program: &Path) -> Result<Self, ServiceError> {
        let dir = tempfile::Builder::new().prefix("hapax-collector-").tempdir();
        let dir = dir.map_err(ServiceError::io("make a temporary directory"))?;
        let [grpc, http] = ports::free()?;
        let mut command = Command::new(program);
        command.args([grpc, http].map(|port| format!("127.0.0.1:{port}")));
        command.arg(dir.path().join("told"));
        let process = Process::spawn("collector", &mut command, &dir.path().join("server.log"))?;
        // Made before it is ready, so that dropping it stops the process in any case.
        let mut server = Self { process, dir, grpc, http };
        server.process.wait_until_logged(READY_LIMIT, |log| log.contains("ready"))?;
        Ok(server)
    }
}

impl Drop for CollectorServer {
    fn drop(&mut self) {
        // Nobody is left to be told, and its files are removed in any case.
        let _ = self.process.stop(&[StopStep::KILL]);
    }
}
