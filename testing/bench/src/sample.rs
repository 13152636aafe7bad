//! One measurement of one way.

use std::{path::Path, sync::Arc, time::Duration};

use hapax::{Options, postgres, sqlite};
use hapax_services::redis::{self, Sync};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Config;

use super::{
    arms::{
        Arm, Batches, audit, engine::EngineArm, postgres_baseline::PostgresBaseline,
        redis::RedisArm, sqlite_baseline::SqliteBaseline,
    },
    disk::Disk,
    error::BenchError,
    figures::{Columns, SampleColumn},
    load::{self, CallerLoad, CallerPace, CallersStop, Numbers, float},
    plan::warm_up,
    process,
    server::BenchServer,
    timetable::Timetable,
    turns::{Measurement, NamedWay},
};
use crate::args::Statements;

/// The threads that callers share, for every way alike.
const WORKERS: usize = 2;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreWay {
    Baseline,
    Ours,
    /// Claims and results in Redis, on disk before they are acknowledged, or within a second.
    Redis(Sync),
}

impl NamedWay for StoreWay {
    fn label(self) -> &'static str {
        match self {
            Self::Baseline => "hand-written",
            Self::Ours => "hapax",
            Self::Redis(Sync::Always) => "Redis, appendfsync always",
            Self::Redis(Sync::EverySecond) => "Redis, everysec (may lose 1 s)",
        }
    }
}

/// Where it is measured.
#[derive(Clone, Copy)]
pub(super) enum StoreGround<'a> {
    Sqlite(&'a Path),
    Postgres(&'a BenchServer),
}

impl StoreGround<'_> {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sqlite(_) => "SQLite",
            Self::Postgres(_) => "PostgreSQL",
        }
    }
}

/// What came out.
#[derive(Debug)]
pub(super) struct StoreSample {
    pub(super) per_second: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
    /// Latencies at half that rate, each from when its request was due.
    pub(super) at_half: Option<Latencies>,
    /// CPU time of this process per request, in microseconds: callers and engine.
    pub(super) cpu_us: f64,
    /// CPU time of the server per request, in microseconds.
    pub(super) server_cpu_us: Option<f64>,
    /// Bytes of the server's log per request.
    pub(super) log_bytes: Option<f64>,
    /// Bytes on disk that came with each key.
    pub(super) disk_bytes: Option<f64>,
    /// Writes that shared a commit, on average.
    pub(super) writes_per_commit: Option<f64>,
    /// Records that were removed because they are past retention, while it warmed up included.
    pub(super) purged: u64,
    /// What makes the figures worthless.
    pub(super) invalid: Option<String>,
}

/// Milliseconds that half, 99 % and 99.9 % of the requests did not exceed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Latencies {
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
}

impl Latencies {
    fn of(load: &CallerLoad) -> Self {
        let [p50_ms, p99_ms, p999_ms] = [0.5, 0.99, 0.999].map(|share| load.latency_ms(share));
        Self { p50_ms, p99_ms, p999_ms }
    }

    fn json(self) -> Value {
        json!({ "p50_ms": self.p50_ms, "p99_ms": self.p99_ms, "p999_ms": self.p999_ms })
    }
}

impl Measurement for StoreSample {
    fn json(&self) -> Value {
        json!({
            "requests_per_second": self.per_second,
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            "p999_ms": self.p999_ms,
            "at_half_rate": self.at_half.map(Latencies::json),
            "cpu_us_per_request": self.cpu_us,
            "server_cpu_us_per_request": self.server_cpu_us,
            "log_bytes_per_request": self.log_bytes,
            "disk_bytes_per_key": self.disk_bytes,
            "writes_per_commit": self.writes_per_commit,
            "purged": self.purged,
            "invalid": self.invalid,
        })
    }

    fn invalid(&self) -> Option<&str> {
        self.invalid.as_deref()
    }
}

/// What tables of ways that keep keys show.
pub(super) const COLUMNS: &Columns<StoreSample> = &[
    ("requests/s", SampleColumn::Median(|sample| Some(sample.per_second))),
    ("range", SampleColumn::Range(|sample| Some(sample.per_second))),
    ("p50 ms", SampleColumn::Median(|sample| Some(sample.p50_ms))),
    ("p99 ms", SampleColumn::Median(|sample| Some(sample.p99_ms))),
    ("p99.9 ms", SampleColumn::Median(|sample| Some(sample.p999_ms))),
    ("at half: p50", SampleColumn::Median(|sample| sample.at_half.map(|half| half.p50_ms))),
    ("p99", SampleColumn::Median(|sample| sample.at_half.map(|half| half.p99_ms))),
    ("p99.9", SampleColumn::Median(|sample| sample.at_half.map(|half| half.p999_ms))),
    ("CPU us", SampleColumn::Median(|sample| Some(sample.cpu_us))),
    ("server CPU us", SampleColumn::Median(|sample| sample.server_cpu_us)),
    ("log bytes", SampleColumn::Median(|sample| sample.log_bytes)),
    ("disk bytes", SampleColumn::Median(|sample| sample.disk_bytes)),
    ("writes/commit", SampleColumn::Median(|sample| sample.writes_per_commit)),
];

/// How a way is measured, whatever it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measure {
    pub(super) duration: Duration,
    pub(super) callers: usize,
    /// Whether it is also measured at half the rate it has reached.
    pub(super) at_half: bool,
}

/// What one of the ways of [`StoreWay`] is to do.
#[derive(Debug, Clone, Copy)]
pub(super) struct WayJob {
    pub(super) statements: Statements,
    pub(super) answer_bytes: usize,
}

/// Measures one way on a fresh file, database or server.
pub(super) fn take(
    measure: Measure,
    job: WayJob,
    ground: StoreGround<'_>,
    way: StoreWay,
) -> Result<StoreSample, BenchError> {
    let WayJob { statements, answer_bytes } = job;
    match (way, ground) {
        (StoreWay::Redis(sync), _) => {
            let redis = redis::RedisServer::start(sync).map_err(BenchError::Redis)?;
            workers()?.block_on(async {
                let disk = Some(Disk::Directory(redis.dir()));
                measure.of(None, disk, RedisArm::connect(&redis).await?).await
            })
        }
        (StoreWay::Baseline, StoreGround::Sqlite(directory)) => {
            on_fresh_file(directory, async |file| {
                let arm = SqliteBaseline::open(file, answer_bytes)?;
                measure.of(None, Some(Disk::File(file)), arm).await
            })
        }
        (StoreWay::Ours, StoreGround::Sqlite(directory)) => {
            on_fresh_file(directory, async |file| {
                let store = sqlite::Store::open(file, sqlite::Options::default())?;
                let arm = EngineArm::start(store, Options::default())?.answering(answer_bytes)?;
                measure.of(None, Some(Disk::File(file)), arm).await
            })
        }
        (StoreWay::Baseline, StoreGround::Postgres(server)) => {
            on_fresh_database(server, async |config| {
                let arm = PostgresBaseline::connect(config, statements, answer_bytes).await?;
                measure.of(Some(server), Some(Disk::Tables(config)), arm).await
            })
        }
        (StoreWay::Ours, StoreGround::Postgres(server)) => {
            on_fresh_database(server, async |config| {
                let store = postgres::Store::connect(config, postgres::Options::default()).await?;
                let arm = EngineArm::start(store, Options::default())?.answering(answer_bytes)?;
                measure.of(Some(server), Some(Disk::Tables(config)), arm).await
            })
        }
    }
}

/// Does `work` with a file that does not exist yet and is removed in the end, on threads of its own.
pub(super) fn on_fresh_file<T>(
    directory: &Path,
    work: impl AsyncFnOnce(&Path) -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    let runtime = workers()?;
    let fresh = tempfile::tempdir_in(directory).map_err(BenchError::Directory)?;
    let done = runtime.block_on(work(&fresh.path().join("bench.db")));
    // Whatever still has the file open goes first.
    drop(runtime);
    done
}

/// Does `work` with a database that is empty and removed in the end, on threads of its own.
pub(super) fn on_fresh_database<T>(
    server: &BenchServer,
    work: impl AsyncFnOnce(&Config) -> Result<T, BenchError>,
) -> Result<T, BenchError> {
    let runtime = workers()?;
    let config = runtime.block_on(server.create(DATABASE))?;
    let done = runtime.block_on(work(&config));
    runtime.block_on(server.remove(DATABASE))?;
    done
}

/// The runtime every way is measured on.
pub(super) fn workers() -> Result<Runtime, BenchError> {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(WORKERS).enable_all().build().map_err(BenchError::Runtime)
}

/// The database of one measurement.
pub(super) const DATABASE: &str = "hapax_bench";

/// Measures one way that is set up in a closed loop, and audits what it did.
pub(super) async fn measure<A: Arm>(
    ground: StoreGround<'_>,
    duration: Duration,
    callers: usize,
    arm: A,
) -> Result<StoreSample, BenchError> {
    let server = match ground {
        StoreGround::Sqlite(_) => None,
        StoreGround::Postgres(server) => Some(server),
    };
    Measure { duration, callers, at_half: false }.of(server, None, arm).await
}

impl Measure {
    /// Measures one way that is set up, after warming it up, and audits what it did.
    pub(super) async fn of<A: Arm>(
        self,
        server: Option<&BenchServer>,
        disk: Option<Disk<'_>>,
        arm: A,
    ) -> Result<StoreSample, BenchError> {
        let arm = Arc::new(arm);
        let sample = self.watch(server, disk, &arm).await;
        arm.close().await;
        sample
    }

    /// The same, and leaves the way as it is.
    pub(super) async fn watch<A: Arm>(
        self,
        server: Option<&BenchServer>,
        disk: Option<Disk<'_>>,
        arm: &Arc<A>,
    ) -> Result<StoreSample, BenchError> {
        let Self { duration, callers, at_half } = self;
        let numbers = Arc::new(Numbers::default());
        let closed = |duration| CallerPace::Closed(CallersStop::After(duration));
        let empty_bytes = bytes(disk).await?;
        let warmed = load::drive(arm, &numbers, callers, closed(warm_up(duration))).await?;
        let before = MeterReading::take(server, &**arm).await?;
        let load = load::drive(arm, &numbers, callers, closed(duration)).await?;
        let after = MeterReading::take(server, &**arm).await?;
        let mut loads = vec![warmed, load];
        if at_half {
            let timetable = Timetable::start(loads[1].per_second() / 2.0, duration / 2);
            loads.push(load::drive(arm, &numbers, callers, CallerPace::Open(timetable)).await?);
        }
        let requests = loads.iter().map(|load| load.requests).sum();
        let wrong = audit(&**arm, requests).await?;
        let failure = loads.iter().find_map(|load| load.failure.as_ref());
        let invalid = failure.map(|error| crate::sentence(error)).or(wrong);
        let grown =
            bytes(disk).await?.zip(empty_bytes).map(|(after, before)| after.saturating_sub(before));
        Ok(StoreSample {
            at_half: loads.get(2).map(Latencies::of),
            disk_bytes: grown.map(|bytes| float(bytes) / float(requests.max(1))),
            ..after.since(&before, &loads[1], invalid)
        })
    }
}

async fn bytes(disk: Option<Disk<'_>>) -> Result<Option<u64>, BenchError> {
    match disk {
        Some(disk) => disk.bytes().await.map(Some),
        None => Ok(None),
    }
}

/// What the meters show at one moment.
struct MeterReading {
    cpu: Duration,
    server_cpu: Option<Duration>,
    log_bytes: Option<u64>,
    batches: Option<Batches>,
    purged: u64,
}

impl MeterReading {
    async fn take<A: Arm>(server: Option<&BenchServer>, arm: &A) -> Result<Self, BenchError> {
        let pid = arm.server().or_else(|| server?.pid());
        let log_bytes = match server {
            Some(server) => Some(server.log_bytes().await?),
            None => None,
        };
        Ok(Self {
            cpu: process::own_cpu()?,
            server_cpu: pid.map(process::family_cpu).transpose()?,
            log_bytes,
            batches: arm.batches(),
            purged: arm.purged(),
        })
    }

    fn since(&self, before: &Self, load: &CallerLoad, invalid: Option<String>) -> StoreSample {
        let requests = float(load.requests.max(1));
        let micros = |after: Duration, before: Duration| {
            (after.saturating_sub(before)).as_secs_f64() * 1e6 / requests
        };
        let server_cpu = self.server_cpu.zip(before.server_cpu);
        let log_bytes = self.log_bytes.zip(before.log_bytes);
        let batches = self.batches.zip(before.batches);
        let Latencies { p50_ms, p99_ms, p999_ms } = Latencies::of(load);
        StoreSample {
            per_second: load.per_second(),
            p50_ms,
            p99_ms,
            p999_ms,
            at_half: None,
            disk_bytes: None,
            cpu_us: micros(self.cpu, before.cpu),
            server_cpu_us: server_cpu.map(|(after, before)| micros(after, before)),
            log_bytes: log_bytes
                .map(|(after, before)| float(after.saturating_sub(before)) / requests),
            writes_per_commit: batches.map(|(after, before)| {
                float(after.writes - before.writes) / float((after.commits - before.commits).max(1))
            }),
            purged: self.purged,
            invalid,
        }
    }
}
