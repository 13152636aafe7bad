//! A SQLite file that grows to many keys: how fast, how large, and what the engine holds in memory.
//!
//! Redis is filled with as many, in turn, and the hand-written way runs in between.

use std::{fs, path::Path, sync::Arc, time::Duration};

use hapax::{Options, sqlite};
use hapax_services::redis::{self, Sync};
use serde_json::json;

use super::{
    arms::{Arm, audit, engine::EngineArm, redis::RedisArm, sqlite_baseline::SqliteBaseline},
    compare::RedisBeside,
    error::BenchError,
    figures::{BoundedFigure, FigureTarget, MeasuredSpread, number},
    load::{self, CallerLoad, CallerPace, CallersStop, Numbers, float},
    plan::RunPlan,
    process,
    progress::BenchProgress,
    report::{Axis, Plot, Point, ReportSection, Scale, Series},
    request::ANSWER_BYTES,
    sample,
};

/// How many callers fill.
const CALLERS: usize = 256;
/// The fill is cut into this many parts; the other ways run between them.
const PARTS: u64 = 20;
/// What the engine may hold beside its cache.
const MEMORY_BESIDE_CACHE: u64 = 64 << 20;

/// How many measurements there will be.
pub(super) fn steps(beside: RedisBeside) -> u64 {
    match beside {
        RedisBeside::Redis => PARTS * 3,
        RedisBeside::Nothing => PARTS * 2,
    }
}

/// Fills `file` with the keys 0 to `plan.fill`.
pub(super) fn run(
    plan: &RunPlan,
    file: &Path,
    beside: RedisBeside,
    progress: &BenchProgress,
) -> Result<ReportSection, BenchError> {
    let redis = match beside {
        RedisBeside::Redis => {
            Some(redis::RedisServer::start(Sync::Always).map_err(BenchError::Redis)?)
        }
        RedisBeside::Nothing => None,
    };
    let runtime = sample::workers()?;
    let filled = runtime.block_on(fill(plan, file, redis.as_ref(), progress));
    // The last log is copied into the file when the store closes.
    drop(runtime);
    let filled = filled?;
    let bytes = fs::metadata(file).map_err(BenchError::Directory)?.len();
    Ok(filled.section(float(bytes) / float(plan.fill)))
}

struct Filled {
    ours: Vec<CallerLoad>,
    baseline: Vec<CallerLoad>,
    redis: Vec<CallerLoad>,
    memory_bytes: f64,
    memory_bytes_max: f64,
    invalid: Vec<String>,
}

async fn fill(
    plan: &RunPlan,
    file: &Path,
    redis: Option<&redis::RedisServer>,
    progress: &BenchProgress,
) -> Result<Filled, BenchError> {
    let options = Options::default();
    let memory_bytes_max = float(options.cache_bytes_max + MEMORY_BESIDE_CACHE);
    let mut memory = Growth::default();
    memory.begin()?;
    let store = sqlite::Store::open(file, sqlite::Options::default())?;
    let mut ours = Filler::new(EngineArm::start(store, options)?);
    memory.end()?;
    let baseline = SqliteBaseline::open(&file.with_extension("baseline"), ANSWER_BYTES)?;
    let mut baseline = Filler::new(baseline);
    let mut redis = match redis {
        Some(server) => Some(Filler::new(RedisArm::connect(server).await?)),
        None => None,
    };
    let pause = CallersStop::After((plan.duration / 2).min(Duration::from_secs(2)));
    for part in 1..=PARTS {
        progress.begin(format!("part {part} of {PARTS} of {} keys", plan.fill))?;
        let end = CallersStop::Before(plan.fill * part / PARTS);
        // Who goes first changes, so that neither always finds the machine as the other left it.
        let ours_first = part % 2 == 0;
        if let (false, Some(redis)) = (ours_first, &mut redis) {
            redis.go_on(end, progress).await?;
        }
        memory.begin()?;
        ours.go_on(end, progress).await?;
        memory.end()?;
        if let (true, Some(redis)) = (ours_first, &mut redis) {
            redis.go_on(end, progress).await?;
        }
        baseline.go_on(pause, progress).await?;
    }
    let mut invalid = wrong(&*ours.arm, &ours.loads).await?;
    invalid.extend(wrong(&*baseline.arm, &baseline.loads).await?);
    let redis = match redis {
        Some(redis) => {
            invalid.extend(wrong(&*redis.arm, &redis.loads).await?);
            redis.loads
        }
        None => Vec::new(),
    };
    ours.arm.close().await;
    let memory_bytes = memory.bytes();
    let (ours, baseline) = (ours.loads, baseline.loads);
    Ok(Filled { ours, baseline, redis, memory_bytes, memory_bytes_max, invalid })
}

/// One way, part by part.
struct Filler<A> {
    arm: Arc<A>,
    numbers: Arc<Numbers>,
    loads: Vec<CallerLoad>,
}

impl<A: Arm> Filler<A> {
    fn new(arm: A) -> Self {
        Self { arm: Arc::new(arm), numbers: Arc::new(Numbers::default()), loads: Vec::new() }
    }

    async fn go_on(
        &mut self,
        until: CallersStop,
        progress: &BenchProgress,
    ) -> Result<(), BenchError> {
        let load =
            load::drive(&self.arm, &self.numbers, CALLERS, CallerPace::Closed(until)).await?;
        self.loads.push(load);
        progress.inc(1);
        Ok(())
    }
}

async fn wrong<A: Arm>(arm: &A, loads: &[CallerLoad]) -> Result<Vec<String>, BenchError> {
    let failures = loads.iter().filter_map(|load| load.failure.as_ref());
    let mut wrong: Vec<String> = failures.map(|error| crate::sentence(error)).collect();
    wrong.extend(audit(arm, loads.iter().map(|load| load.requests).sum()).await?);
    Ok(wrong)
}

/// Memory that came while our way ran; what the other way took in between does not count.
#[derive(Default)]
struct Growth {
    before: u64,
    came: u64,
    went: u64,
}

impl Growth {
    fn begin(&mut self) -> Result<(), BenchError> {
        self.before = process::own_memory()?;
        Ok(())
    }

    fn end(&mut self) -> Result<(), BenchError> {
        let after = process::own_memory()?;
        self.came += after.saturating_sub(self.before);
        self.went += self.before.saturating_sub(after);
        Ok(())
    }

    fn bytes(&self) -> f64 {
        float(self.came) - float(self.went)
    }
}

impl Filled {
    fn section(&self, bytes_per_key: f64) -> ReportSection {
        let row = |way: &str, loads: &[CallerLoad]| {
            let keys: u64 = loads.iter().map(|load| load.requests).sum();
            let spread = MeasuredSpread::of(loads.iter().map(CallerLoad::per_second));
            let p99 = MeasuredSpread::of(loads.iter().map(|load| load.latency_ms(0.99)));
            let show = |value: Option<f64>| value.map_or_else(String::new, number);
            vec![
                way.to_owned(),
                number(float(keys)),
                number(overall(loads)),
                show(spread.map(|spread| spread.min)),
                show(spread.map(|spread| spread.max)),
                show(p99.map(|p99| p99.max)),
            ]
        };
        let mut rows =
            vec![row("hand-written (SQLite)", &self.baseline), row("hapax (SQLite)", &self.ours)];
        if !self.redis.is_empty() {
            rows.push(row("Redis, appendfsync always", &self.redis));
        }
        let rates =
            |loads: &[CallerLoad]| loads.iter().map(CallerLoad::per_second).collect::<Vec<_>>();
        ReportSection {
            title: format!("Stores filled by {CALLERS} callers"),
            header: vec![
                "way",
                "keys",
                "requests/s",
                "slowest part",
                "fastest part",
                "worst p99 ms",
            ],
            rows,
            plots: vec![self.plot()],
            claims: self.claims(bytes_per_key),
            invalid: self.invalid.clone(),
            data: json!({
                "baseline": rates(&self.baseline),
                "hapax": rates(&self.ours),
                "redis": rates(&self.redis),
                "bytes_per_key": bytes_per_key,
                "memory_bytes": self.memory_bytes,
            }),
        }
    }

    /// How fast each was while it held so many keys.
    fn plot(&self) -> Plot {
        let line = |name: &str, loads: &[CallerLoad]| {
            let mut keys = 0.0;
            let points = loads.iter().map(|load| {
                keys += float(load.requests);
                let rate = load.per_second();
                Point { x: keys, low: rate, median: rate, high: rate }
            });
            Series { name: name.to_owned(), points: points.collect() }
        };
        let series =
            [line("hapax (SQLite)", &self.ours), line("Redis, appendfsync always", &self.redis)];
        Plot {
            title: "Filling a store".to_owned(),
            x: Axis { name: "keys in the store", scale: Scale::Linear },
            y: Axis { name: "requests/s", scale: Scale::Linear },
            series: series.into_iter().filter(|series| !series.points.is_empty()).collect(),
        }
    }

    fn claims(&self, bytes_per_key: f64) -> Vec<BoundedFigure> {
        let one = |value| MeasuredSpread { median: value, min: value, max: value };
        let claim = |what: &str, value, unit, target| BoundedFigure {
            what: what.to_owned(),
            measured: one(value),
            unit,
            target: Some(target),
        };
        let mib = f64::from(1 << 20);
        // Each part is compared with itself: both were filled as far on the same machine.
        let parts = self.ours.iter().zip(&self.redis);
        let parts =
            MeasuredSpread::of(parts.map(|(ours, redis)| ours.per_second() / redis.per_second()));
        let whole = overall(&self.ours) / overall(&self.redis);
        let against_redis = parts.map(|MeasuredSpread { min, max, .. }| BoundedFigure {
            what: "requests/s over the whole fill, against Redis, appendfsync always".to_owned(),
            measured: MeasuredSpread { median: whole, min, max },
            unit: "x",
            target: Some(FigureTarget::AtLeast(1.2)),
        });
        let mut claims = vec![
            claim(
                "requests/s over the whole fill, against hand-written",
                overall(&self.ours) / overall(&self.baseline),
                "x",
                FigureTarget::AtLeast(10.0),
            ),
            claim("on disk for each key", bytes_per_key, " bytes", FigureTarget::AtMost(780.0)),
            claim(
                "memory that came, SQLite's own pages included",
                self.memory_bytes / mib,
                " MiB",
                FigureTarget::AtMost(self.memory_bytes_max / mib),
            ),
        ];
        claims.extend(against_redis);
        claims
    }
}

/// Requests per second over all parts together.
fn overall(loads: &[CallerLoad]) -> f64 {
    let requests: u64 = loads.iter().map(|load| load.requests).sum();
    let elapsed: Duration = loads.iter().map(|load| load.elapsed).sum();
    float(requests) / elapsed.as_secs_f64()
}
