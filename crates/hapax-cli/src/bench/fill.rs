//! A SQLite file that grows to many keys: how fast, how large, and what the engine holds in memory.

use std::{fs, path::Path, sync::Arc, time::Duration};

use hapax::{Options, sqlite};
use serde_json::json;

use super::{
    arms::{Arm, audit, engine::EngineArm, sqlite_baseline::SqliteBaseline},
    error::BenchError,
    figures::{Claim, Spread, Target, number},
    load::{self, Load, Numbers, Stop, float},
    plan::Plan,
    process,
    progress::Progress,
    report::Section,
    sample,
};

/// How many callers fill.
const CALLERS: usize = 256;
/// The fill is cut into this many parts; the hand-written way runs between them.
const PARTS: u64 = 20;
/// What the engine may hold beside its cache.
const MEMORY_BESIDE_CACHE: u64 = 64 << 20;

/// How many measurements there will be.
pub(super) const STEPS: u64 = PARTS * 2;

/// Fills `file` with the keys 0 to `plan.fill`.
pub(super) fn run(plan: &Plan, file: &Path, progress: &Progress) -> Result<Section, BenchError> {
    let runtime = sample::workers()?;
    let filled = runtime.block_on(fill(plan, file, progress));
    // The last log is copied into the file when the store closes.
    drop(runtime);
    let filled = filled?;
    let bytes = fs::metadata(file).map_err(BenchError::Directory)?.len();
    Ok(filled.section(float(bytes) / float(plan.fill)))
}

struct Filled {
    ours: Vec<Load>,
    baseline: Vec<Load>,
    memory_bytes: f64,
    memory_bytes_max: f64,
    invalid: Vec<String>,
}

async fn fill(plan: &Plan, file: &Path, progress: &Progress) -> Result<Filled, BenchError> {
    let options = Options::default();
    let memory_bytes_max = float(options.cache_bytes_max + MEMORY_BESIDE_CACHE);
    let mut memory = Growth::default();
    memory.begin()?;
    let store = sqlite::Store::open(file, sqlite::Options::default())?;
    let ours = Arc::new(EngineArm::start(store, options)?);
    memory.end()?;
    let baseline = Arc::new(SqliteBaseline::open(&file.with_extension("baseline"))?);
    let (our_numbers, numbers) = (Arc::new(Numbers::default()), Arc::new(Numbers::default()));
    let (mut our_loads, mut loads) = (Vec::new(), Vec::new());
    let pause = Stop::After((plan.duration / 2).min(Duration::from_secs(2)));
    for part in 1..=PARTS {
        progress.begin(format!("SQLite, part {part} of {PARTS} of {} keys", plan.fill))?;
        memory.begin()?;
        let end = Stop::Before(plan.fill * part / PARTS);
        our_loads.push(load::drive(&ours, &our_numbers, CALLERS, end).await?);
        memory.end()?;
        progress.inc(1);
        loads.push(load::drive(&baseline, &numbers, CALLERS, pause).await?);
        progress.inc(1);
    }
    let mut invalid = wrong(&*ours, &our_loads).await?;
    invalid.extend(wrong(&*baseline, &loads).await?);
    ours.close().await;
    let memory_bytes = memory.bytes();
    Ok(Filled { ours: our_loads, baseline: loads, memory_bytes, memory_bytes_max, invalid })
}

async fn wrong<A: Arm>(arm: &A, loads: &[Load]) -> Result<Vec<String>, BenchError> {
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
    fn section(&self, bytes_per_key: f64) -> Section {
        let row = |way: &str, loads: &[Load]| {
            let keys: u64 = loads.iter().map(|load| load.requests).sum();
            let spread = Spread::of(loads.iter().map(Load::per_second));
            let p99 = Spread::of(loads.iter().map(|load| load.latency_ms(0.99)));
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
        let rates = |loads: &[Load]| loads.iter().map(Load::per_second).collect::<Vec<_>>();
        Section {
            title: format!("SQLite, filled by {CALLERS} callers"),
            header: vec![
                "way",
                "keys",
                "requests/s",
                "slowest part",
                "fastest part",
                "worst p99 ms",
            ],
            rows: vec![row("hand-written", &self.baseline), row("hapax", &self.ours)],
            claims: self.claims(bytes_per_key),
            invalid: self.invalid.clone(),
            plots: Vec::new(),
            data: json!({
                "baseline": rates(&self.baseline),
                "hapax": rates(&self.ours),
                "bytes_per_key": bytes_per_key,
                "memory_bytes": self.memory_bytes,
            }),
        }
    }

    fn claims(&self, bytes_per_key: f64) -> Vec<Claim> {
        let one = |value| Spread { median: value, min: value, max: value };
        let claim = |what: &str, value, unit, target| Claim {
            what: what.to_owned(),
            measured: one(value),
            unit,
            target: Some(target),
        };
        let mib = f64::from(1 << 20);
        vec![
            claim(
                "requests/s over the whole fill, against hand-written",
                overall(&self.ours) / overall(&self.baseline),
                "x",
                Target::AtLeast(10.0),
            ),
            claim("on disk for each key", bytes_per_key, " bytes", Target::AtMost(700.0)),
            claim(
                "memory that came, SQLite's own pages included",
                self.memory_bytes / mib,
                " MiB",
                Target::AtMost(self.memory_bytes_max / mib),
            ),
        ]
    }
}

/// Requests per second over all parts together.
fn overall(loads: &[Load]) -> f64 {
    let requests: u64 = loads.iter().map(|load| load.requests).sum();
    let elapsed: Duration = loads.iter().map(|load| load.elapsed).sum();
    float(requests) / elapsed.as_secs_f64()
}
