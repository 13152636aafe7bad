//! One measurement of one way.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use hapax::{Options, postgres, sqlite};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

use super::{
    arms::{
        Arm, Batches, audit, engine::EngineArm, postgres_baseline::PostgresBaseline,
        sqlite_baseline::SqliteBaseline,
    },
    error::BenchError,
    load::{self, Load, Numbers, Stop, float},
    plan::{Plan, warm_up},
    process,
    server::Server,
    turns::Figures,
};

/// The threads that callers share, for every way alike.
const WORKERS: usize = 2;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    Baseline,
    Ours,
}

/// Where it is measured.
#[derive(Clone, Copy)]
pub(super) enum Ground<'a> {
    Sqlite(&'a Path),
    Postgres(&'a Server),
}

/// What came out.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) per_second: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    /// CPU time of this process per request, in microseconds: callers and engine.
    pub(super) cpu_us: f64,
    /// CPU time of the server per request, in microseconds.
    pub(super) server_cpu_us: Option<f64>,
    /// Bytes of the server's log per request.
    pub(super) log_bytes: Option<f64>,
    /// Writes that shared a commit, on average.
    pub(super) writes_per_commit: Option<f64>,
    /// What makes the figures worthless.
    pub(super) invalid: Option<String>,
}

impl Figures for Sample {
    fn json(&self) -> Value {
        json!({
            "requests_per_second": self.per_second,
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            "cpu_us_per_request": self.cpu_us,
            "server_cpu_us_per_request": self.server_cpu_us,
            "log_bytes_per_request": self.log_bytes,
            "writes_per_commit": self.writes_per_commit,
            "invalid": self.invalid,
        })
    }

    fn invalid(&self) -> Option<&str> {
        self.invalid.as_deref()
    }
}

/// Measures one way on a fresh file or database, with threads of its own.
pub(super) fn take(
    plan: &Plan,
    ground: Ground<'_>,
    way: Way,
    callers: usize,
) -> Result<Sample, BenchError> {
    let runtime = workers()?;
    let trial = Trial { plan, ground, callers };
    match (ground, way) {
        (Ground::Sqlite(directory), way) => {
            // Removed with everything in it when the measurement is over.
            let fresh = tempfile::tempdir_in(directory).map_err(BenchError::Directory)?;
            let file = fresh.path().join("bench.db");
            let sample = runtime.block_on(trial.on_file(&file, way));
            drop(runtime);
            sample
        }
        (Ground::Postgres(server), way) => {
            let sample = runtime.block_on(trial.on_server(server, way));
            runtime.block_on(server.remove(DATABASE))?;
            sample
        }
    }
}

/// The runtime every way is measured on.
pub(super) fn workers() -> Result<Runtime, BenchError> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(WORKERS).enable_all().build().map_err(BenchError::Runtime)
}

/// The database of one measurement.
pub(super) const DATABASE: &str = "hapax_bench";

struct Trial<'a> {
    plan: &'a Plan,
    ground: Ground<'a>,
    callers: usize,
}

impl Trial<'_> {
    async fn on_file(&self, file: &PathBuf, way: Way) -> Result<Sample, BenchError> {
        match way {
            Way::Baseline => self.of(SqliteBaseline::open(file)?).await,
            Way::Ours => {
                let store = sqlite::Store::open(file, sqlite::Options::default())?;
                self.of(EngineArm::start(store, Options::default())?).await
            }
        }
    }

    async fn on_server(&self, server: &Server, way: Way) -> Result<Sample, BenchError> {
        let config = server.create(DATABASE).await?;
        match way {
            Way::Baseline => {
                let arm = PostgresBaseline::connect(&config, self.plan.statements).await?;
                self.of(arm).await
            }
            Way::Ours => {
                let options = postgres::Options::default();
                let store = postgres::Store::connect(&config, options).await?;
                self.of(EngineArm::start(store, Options::default())?).await
            }
        }
    }

    async fn of<A: Arm>(&self, arm: A) -> Result<Sample, BenchError> {
        measure(self.ground, self.plan.duration, self.callers, arm).await
    }
}

/// Measures one way that is set up, after warming it up, and audits what it did.
pub(super) async fn measure<A: Arm>(
    ground: Ground<'_>,
    duration: Duration,
    callers: usize,
    arm: A,
) -> Result<Sample, BenchError> {
    let (arm, numbers) = (Arc::new(arm), Arc::new(Numbers::default()));
    let warmed = load::drive(&arm, &numbers, callers, Stop::After(warm_up(duration))).await?;
    let before = Reading::take(ground, &*arm).await?;
    let load = load::drive(&arm, &numbers, callers, Stop::After(duration)).await?;
    let after = Reading::take(ground, &*arm).await?;
    let wrong = audit(&*arm, warmed.requests + load.requests).await?;
    let failure = warmed.failure.as_ref().or(load.failure.as_ref());
    let invalid = failure.map(|error| crate::sentence(error)).or(wrong);
    Ok(after.since(&before, &load, invalid))
}

/// What the meters show at one moment.
struct Reading {
    cpu: Duration,
    server_cpu: Option<Duration>,
    log_bytes: Option<u64>,
    batches: Option<Batches>,
}

impl Reading {
    async fn take<A: Arm>(ground: Ground<'_>, arm: &A) -> Result<Self, BenchError> {
        let (server_cpu, log_bytes) = match ground {
            Ground::Sqlite(_) => (arm.server().map(process::family_cpu).transpose()?, None),
            Ground::Postgres(server) => {
                let cpu = server.pid().map(process::family_cpu).transpose()?;
                (cpu, Some(server.log_bytes().await?))
            }
        };
        Ok(Self { cpu: process::own_cpu()?, server_cpu, log_bytes, batches: arm.batches() })
    }

    fn since(&self, before: &Self, load: &Load, invalid: Option<String>) -> Sample {
        let requests = float(load.requests.max(1));
        let micros = |after: Duration, before: Duration| {
            (after.saturating_sub(before)).as_secs_f64() * 1e6 / requests
        };
        let server_cpu = self.server_cpu.zip(before.server_cpu);
        let log_bytes = self.log_bytes.zip(before.log_bytes);
        let batches = self.batches.zip(before.batches);
        Sample {
            per_second: load.per_second(),
            p50_ms: load.latency_ms(0.50),
            p99_ms: load.latency_ms(0.99),
            cpu_us: micros(self.cpu, before.cpu),
            server_cpu_us: server_cpu.map(|(after, before)| micros(after, before)),
            log_bytes: log_bytes
                .map(|(after, before)| float(after.saturating_sub(before)) / requests),
            writes_per_commit: batches.map(|(after, before)| {
                float(after.writes - before.writes) / float((after.commits - before.commits).max(1))
            }),
            invalid,
        }
    }
}
