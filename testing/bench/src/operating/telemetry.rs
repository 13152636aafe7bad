//! A gateway that tells a collector, and one that tells nobody, at the same rate of requests.

use std::{path::Path, time::Duration};

use hapax_services::collector::CollectorServer;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Builder;

use super::{OperatingPlan, told::ToldCounts};
use crate::{
    BenchError,
    figures::{BoundedFigure, Columns, SampleColumn, number},
    http::{
        self, BenchGateway, Child, GatewayProtection, GatewaySetup, HttpLoad, KeyChoice,
        RequestPace, Traffic,
    },
    load::{CallersStop, float},
    plan::warm_up,
    process,
    run::BenchRun,
    timetable::Timetable,
    turns::{Measurement, NamedWay, WayTurns},
};

/// Which part of the requests is traced.
const SAMPLED: f64 = 0.01;
const CONNECTIONS: usize = 64;
/// The share of what the machine does at best that it is asked for: beyond it, what is measured is
/// how requests wait.
const SUSTAINED_SHARE: f64 = 0.7;

/// What a gateway tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TelemetryWay {
    Off,
    Http,
    Grpc,
}

const WAYS: [TelemetryWay; 3] = [TelemetryWay::Off, TelemetryWay::Http, TelemetryWay::Grpc];

impl NamedWay for TelemetryWay {
    fn label(self) -> &'static str {
        match self {
            Self::Off => "telemetry off",
            Self::Http => "OTLP over HTTP",
            Self::Grpc => "OTLP over gRPC",
        }
    }
}

impl TelemetryWay {
    /// What the gateway's configuration says. Metrics are pushed sixty times as often as by default, so
    /// that they weigh in a measurement of seconds.
    fn settings(self, collector: &CollectorServer) -> String {
        let (protocol, endpoint) = match self {
            Self::Off => return String::new(),
            Self::Http => ("http", collector.http()),
            Self::Grpc => ("grpc", collector.grpc()),
        };
        format!(
            "[telemetry]\nendpoint = \"http://{endpoint}\"\nprotocol = \"{protocol}\"\n\
             sample = {SAMPLED}\nmetrics_every = \"1s\"\n"
        )
    }
}

/// What came out.
struct TelemetrySample {
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// CPU time of the gateway's process per request, in microseconds.
    gateway_cpu_us: f64,
    told: ToldCounts,
    invalid: Option<String>,
}

impl Measurement for TelemetrySample {
    fn json(&self) -> Value {
        json!({
            "requests_per_second": self.per_second,
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            "gateway_cpu_us_per_request": self.gateway_cpu_us,
            "traced_requests_told": self.told.requests,
            "pushes_of_metrics_told": self.told.metrics,
            "invalid": self.invalid,
        })
    }

    fn invalid(&self) -> Option<&str> {
        self.invalid.as_deref()
    }
}

/// How many measurements there will be: one more finds out what the machine sustains.
pub(super) fn steps(plan: &OperatingPlan) -> u64 {
    1 + plan.steps(WAYS.len())
}

/// Measures, and says how the ways compare.
pub(super) fn run(plan: &OperatingPlan, run: &mut BenchRun) -> Result<(), BenchError> {
    run.progress.begin("telemetry, starting a collector")?;
    let collector = CollectorServer::start().map_err(BenchError::Collector)?;
    // One thread makes the load: it leaves the cores to what is measured.
    let runtime =
        Builder::new_current_thread().enable_all().build().map_err(BenchError::Runtime)?;
    let directory = run.directory().to_owned();
    let ground = TelemetryGround { plan, directory: &directory, collector: &collector };
    run.progress.begin("telemetry, what the machine sustains")?;
    let sustained = run.progress.unless_interrupted(ground.sustained());
    let rate = plan.rate.min(runtime.block_on(sustained)?);
    run.progress.inc(1);
    let turns = WayTurns::take(plan.rounds, &WAYS, |way| {
        run.progress.begin(format!("telemetry, {}", way.label()))?;
        let sample = ground.measure(way, rate);
        let sample = runtime.block_on(run.progress.unless_interrupted(sample));
        run.progress.inc(1);
        sample
    })?;
    let claims = [TelemetryWay::Http, TelemetryWay::Grpc].map(|way| {
        let ratio = turns.ratio(way, TelemetryWay::Off, |sample| Some(sample.gateway_cpu_us));
        let what = format!("{}: CPU per request, against telemetry off", way.label());
        BoundedFigure::at_most(&what, ratio, "x", 1.05)
    });
    let reached = if rate < plan.rate { ", as many as this machine sustains" } else { "" };
    let title = format!("Telemetry, {} requests/s{reached}, 1 % traced", number(rate));
    let mut section = turns.section(title, COLUMNS, claims);
    section.data["asked_per_second"] = json!(rate);
    run.add(section);
    Ok(())
}

/// What measurements share.
struct TelemetryGround<'a> {
    plan: &'a OperatingPlan,
    directory: &'a Path,
    collector: &'a CollectorServer,
}

impl TelemetryGround<'_> {
    /// How many requests a second can be asked for.
    async fn sustained(&self) -> Result<f64, BenchError> {
        let mut trial = self.start(TelemetryWay::Off).await?;
        let pace = RequestPace::Closed(CallersStop::After(self.plan.duration));
        let load = trial.traffic.drive(&pace, self.plan.duration).await;
        Ok((load.per_second() * SUSTAINED_SHARE).floor())
    }

    async fn measure(&self, way: TelemetryWay, rate: f64) -> Result<TelemetrySample, BenchError> {
        let before = ToldCounts::read(&self.collector.told());
        let mut trial = self.start(way).await?;
        let pid = trial.gateway.child.pid();
        let warmed = trial.requests(rate, warm_up(self.plan.duration)).await;
        let cpu_before = process::family_cpu(pid)?;
        let load = trial.requests(rate, self.plan.duration).await;
        let used = process::family_cpu(pid)?.saturating_sub(cpu_before);
        let wrong = trial.traffic.wrong(trial.upstream.port, [&warmed, &load].into_iter()).await?;
        // What the gateway has not told yet it tells at its end.
        drop(trial);
        let told = ToldCounts::read(&self.collector.told()).since(before);
        let requests = warmed.requests + load.requests;
        Ok(TelemetrySample {
            per_second: load.per_second(),
            p50_ms: load.latency_ms(0.5),
            p99_ms: load.latency_ms(0.99),
            gateway_cpu_us: used.as_secs_f64() * 1e6 / float(load.requests.max(1)),
            told,
            invalid: wrong.or_else(|| match way {
                TelemetryWay::Off => told.wrong_of_none(),
                TelemetryWay::Http | TelemetryWay::Grpc => told.wrong(requests, SAMPLED),
            }),
        })
    }

    async fn start(&self, way: TelemetryWay) -> Result<TelemetryTrial, BenchError> {
        let files = tempfile::tempdir_in(self.directory).map_err(BenchError::Directory)?;
        let upstream = Child::upstream(files.path())?;
        let setup = GatewaySetup {
            program: &self.plan.program,
            upstream: upstream.port,
            store: http::sqlite(files.path()),
            protection: GatewayProtection::Protect,
            settings: way.settings(self.collector),
            directory: files.path(),
        };
        let gateway = setup.start()?;
        let traffic = Traffic::connect(gateway.child.port, CONNECTIONS, KeyChoice::Fresh).await?;
        Ok(TelemetryTrial { traffic, gateway, upstream, _files: files })
    }
}

/// A gateway, who asks it, and what is behind it; they end in this order.
struct TelemetryTrial {
    traffic: Traffic,
    gateway: BenchGateway,
    upstream: Child,
    _files: TempDir,
}

impl TelemetryTrial {
    async fn requests(&mut self, per_second: f64, duration: Duration) -> HttpLoad {
        let timetable = Timetable::start(per_second, duration);
        self.traffic.drive(&RequestPace::Open(timetable), duration).await
    }
}

const COLUMNS: &Columns<TelemetrySample> = &[
    ("requests/s", SampleColumn::Median(|sample| Some(sample.per_second))),
    ("p50 ms", SampleColumn::Median(|sample| Some(sample.p50_ms))),
    ("p99 ms", SampleColumn::Median(|sample| Some(sample.p99_ms))),
    ("CPU us/request", SampleColumn::Median(|sample| Some(sample.gateway_cpu_us))),
    ("range", SampleColumn::Range(|sample| Some(sample.gateway_cpu_us))),
    ("traces told", SampleColumn::Median(|sample| Some(float(sample.told.requests)))),
];
