//! One measurement of one way, with fresh processes and a fresh store.

use std::{path::Path, time::Duration};

use serde_json::{Value, json};

use super::{
    child::Child,
    database::Database,
    disk::RecordDisk,
    gateway::{self, GatewaySetup},
    load::{HttpLoad, KeyChoice, RequestPace, Traffic},
    nginx::Nginx,
    plan::HttpPlan,
    way::{Between, Records},
};
use crate::{
    BenchError,
    args::HttpWay,
    load::{CallersStop, float},
    process,
    timetable::Timetable,
    turns::Measurement,
};

/// The share of the measured rate that is asked for when latency is measured by a timetable.
const OPEN_SHARE: f64 = 0.5;
/// How long the effects that are replayed may take: one connection on a slow disk needs a while.
const FILL_LIMIT: Duration = Duration::from_secs(120);

/// What came out.
#[derive(Debug)]
pub(super) struct HttpSample {
    pub(super) per_second: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
    /// At half the rate, timed from when each request was due.
    pub(super) open: Latency,
    /// CPU time per request, in microseconds, of what stands between the load and the upstream.
    pub(super) proxy_cpu_us: Option<f64>,
    /// CPU time of the database server per request, in microseconds.
    pub(super) database_cpu_us: Option<f64>,
    /// Bytes on disk for each key, where records are kept of new keys.
    pub(super) disk_bytes: Option<f64>,
    /// Bytes of the database server's log for each request.
    pub(super) log_bytes: Option<f64>,
    /// CPU time of the upstream and of the load per request, in microseconds.
    pub(super) other_cpu_us: f64,
    /// What makes the figures worthless.
    pub(super) invalid: Option<String>,
}

/// Latencies at a rate that was kept whatever happened.
#[derive(Debug, Clone, Copy)]
pub(super) struct Latency {
    pub(super) per_second: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
}

impl Measurement for HttpSample {
    fn json(&self) -> Value {
        json!({
            "requests_per_second": self.per_second,
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            "p999_ms": self.p999_ms,
            "open_loop": {
                "requests_per_second": self.open.per_second,
                "p50_ms": self.open.p50_ms,
                "p99_ms": self.open.p99_ms,
                "p999_ms": self.open.p999_ms,
            },
            "proxy_cpu_us_per_request": self.proxy_cpu_us,
            "database_cpu_us_per_request": self.database_cpu_us,
            "disk_bytes_per_key": self.disk_bytes,
            "log_bytes_per_request": self.log_bytes,
            "load_and_upstream_cpu_us_per_request": self.other_cpu_us,
            "invalid": self.invalid,
        })
    }

    fn invalid(&self) -> Option<&str> {
        self.invalid.as_deref()
    }
}

/// What measurements share.
pub(super) struct HttpGround<'a> {
    pub(super) program: &'a Path,
    pub(super) directory: &'a Path,
    pub(super) nginx: Option<&'a Nginx>,
    pub(super) database: Option<&'a Database>,
}

impl HttpGround<'_> {
    /// Whether this way can be measured here.
    pub(super) fn offers(&self, way: HttpWay) -> bool {
        match way.between() {
            Between::Nginx => self.nginx.is_some(),
            Between::Gateway(_, Records::Server) => self.database.is_some(),
            Between::Nothing | Between::Gateway(_, Records::File) => true,
        }
    }

    pub(super) async fn measure(
        &self,
        plan: &HttpPlan,
        way: HttpWay,
        connections: usize,
    ) -> Result<HttpSample, BenchError> {
        // Removed with everything in it when the measurement is over.
        let fresh = tempfile::tempdir_in(self.directory).map_err(BenchError::Directory)?;
        let upstream = Child::upstream(fresh.path())?;
        let proxy = self.start(way, fresh.path(), upstream.port).await?;
        let port = proxy.as_ref().map_or(upstream.port, |proxy| proxy.port);
        let database = self.database.filter(|_| way == HttpWay::Postgres);
        let meters = CpuMeters {
            proxy: proxy.as_ref().map(Child::pid),
            upstream: upstream.pid(),
            database: database.and_then(Database::pid),
        };
        let mut trial = HttpTrial {
            traffic: Traffic::connect(port, connections, way.keys()).await?,
            meters,
            upstream: upstream.port,
            disk: match way {
                HttpWay::Sqlite => Some(RecordDisk::File(gateway::sqlite_file(fresh.path()))),
                HttpWay::Postgres => database.map(RecordDisk::Server),
                HttpWay::Direct | HttpWay::Nginx | HttpWay::Unprotected | HttpWay::Replay => None,
            },
        };
        let sample = trial.run(plan).await?;
        drop((trial, proxy));
        if let Some(database) = database {
            database.remove().await?;
        }
        Ok(sample)
    }

    async fn start(
        &self,
        way: HttpWay,
        directory: &Path,
        upstream: u16,
    ) -> Result<Option<Child>, BenchError> {
        let (protection, store) = match (way.between(), self.nginx, self.database) {
            (Between::Nginx, Some(nginx), _) => return nginx.start(directory, upstream).map(Some),
            (Between::Gateway(protection, Records::Server), _, Some(database)) => {
                (protection, database.fresh().await?)
            }
            (Between::Gateway(protection, Records::File), ..) => {
                (protection, gateway::sqlite(directory))
            }
            // What is not offered is not asked for.
            (Between::Nothing | Between::Nginx | Between::Gateway(_, Records::Server), ..) => {
                return Ok(None);
            }
        };
        let program = self.program;
        let settings = String::new();
        let setup = GatewaySetup { program, upstream, store, protection, settings, directory };
        Ok(Some(setup.start()?.child))
    }
}

struct HttpTrial<'a> {
    traffic: Traffic,
    meters: CpuMeters,
    upstream: u16,
    /// Where records are kept of new keys.
    disk: Option<RecordDisk<'a>>,
}

impl HttpTrial<'_> {
    async fn run(&mut self, plan: &HttpPlan) -> Result<HttpSample, BenchError> {
        let empty = self.disk_bytes().await?;
        let filled = self.fill().await;
        let warmed = self.closed(CallersStop::After(plan.warm_up()), plan.warm_up()).await;
        let (logged, before) = (self.log_bytes().await?, self.meters.read()?);
        let load = self.closed(CallersStop::After(plan.duration), plan.duration).await;
        let (after, log_end) = (self.meters.read()?, self.log_bytes().await?);
        let timetable = Timetable::start(load.per_second() * OPEN_SHARE, plan.duration);
        let open = self.traffic.drive(&RequestPace::Open(timetable), plan.duration).await;
        let each = |bytes: Option<u64>, before: Option<u64>, of: u64| {
            bytes.zip(before).map(|(now, then)| float(now.saturating_sub(then)) / float(of.max(1)))
        };
        let keys = warmed.requests + load.requests + open.requests;
        let disk_bytes = each(self.disk_bytes().await?, empty, keys);
        let log_bytes = each(log_end, logged, load.requests);
        let loads = filled.iter().chain([&warmed, &load, &open]);
        let invalid = self.traffic.wrong(self.upstream, loads).await?;
        Ok(HttpSample { disk_bytes, log_bytes, ..after.since(&before, &load, &open, invalid) })
    }

    async fn disk_bytes(&self) -> Result<Option<u64>, BenchError> {
        match &self.disk {
            Some(disk) => disk.bytes().await.map(Some),
            None => Ok(None),
        }
    }

    async fn log_bytes(&self) -> Result<Option<u64>, BenchError> {
        match &self.disk {
            Some(disk) => disk.log_bytes().await,
            None => Ok(None),
        }
    }

    /// Has the effects that are then replayed.
    async fn fill(&mut self) -> Option<HttpLoad> {
        match self.traffic.keys {
            KeyChoice::Fresh => None,
            KeyChoice::Repeated(keys) => {
                Some(self.closed(CallersStop::Before(keys), FILL_LIMIT).await)
            }
        }
    }

    async fn closed(&mut self, stop: CallersStop, duration: Duration) -> HttpLoad {
        self.traffic.drive(&RequestPace::Closed(stop), duration).await
    }
}

/// Whose CPU time is read.
struct CpuMeters {
    proxy: Option<u32>,
    upstream: u32,
    database: Option<u32>,
}

impl CpuMeters {
    fn read(&self) -> Result<CpuReading, BenchError> {
        Ok(CpuReading {
            proxy: self.proxy.map(process::family_cpu).transpose()?,
            database: self.database.map(process::family_cpu).transpose()?,
            others: process::family_cpu(self.upstream)? + process::own_cpu()?,
        })
    }
}

/// CPU time used until one moment.
struct CpuReading {
    proxy: Option<Duration>,
    database: Option<Duration>,
    others: Duration,
}

impl CpuReading {
    fn since(
        &self,
        before: &Self,
        load: &HttpLoad,
        open: &HttpLoad,
        invalid: Option<String>,
    ) -> HttpSample {
        let micros = |after: Duration, before: Duration| {
            after.saturating_sub(before).as_secs_f64() * 1e6 / float(load.requests.max(1))
        };
        let optional = |after: Option<Duration>, before: Option<Duration>| {
            after.zip(before).map(|(after, before)| micros(after, before))
        };
        HttpSample {
            per_second: load.per_second(),
            p50_ms: load.latency_ms(0.50),
            p99_ms: load.latency_ms(0.99),
            p999_ms: load.latency_ms(0.999),
            open: Latency {
                per_second: open.per_second(),
                p50_ms: open.latency_ms(0.50),
                p99_ms: open.latency_ms(0.99),
                p999_ms: open.latency_ms(0.999),
            },
            proxy_cpu_us: optional(self.proxy, before.proxy),
            database_cpu_us: optional(self.database, before.database),
            disk_bytes: None,
            log_bytes: None,
            other_cpu_us: micros(self.others, before.others),
            invalid,
        }
    }
}
