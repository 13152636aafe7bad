//! Finished operations asked for again: from the engine's memory, and from the file.

use std::{path::Path, sync::Arc, time::Duration};

use hapax::{BeginRequest, Options, sqlite};
use serde_json::json;
use tokio::{
    runtime::Builder,
    task::{JoinSet, yield_now},
    time::Instant,
};

use super::{
    arms::engine::EngineArm,
    error::BenchError,
    figures::{BoundedFigure, FigureTarget, MeasuredSpread, number},
    load::float,
    plan::RunPlan,
    progress::BenchProgress,
    report::ReportSection,
    sample,
};

/// Keys that are asked for again and again from memory.
const CACHED_KEYS: u64 = 4096;
/// How many callers read from the file.
const FILE_CALLERS: u64 = 256;
/// Requests between two looks at the clock.
const BETWEEN_LOOKS: u64 = 256;

/// How many measurements there will be.
pub(super) const STEPS: u64 = 3;

type Replayer = EngineArm;

/// Replays the keys 0 to `plan.fill` of a filled file.
pub(super) fn run(
    plan: &RunPlan,
    file: &Path,
    progress: &BenchProgress,
) -> Result<ReportSection, BenchError> {
    let rounds = plan.rounds.min(5);
    let duration = plan.duration / rounds;
    let mut measured: [Vec<f64>; 3] = Default::default();
    progress.begin("replays from memory")?;
    let one_core =
        Builder::new_current_thread().enable_all().build().map_err(BenchError::Runtime)?;
    one_core.block_on(async {
        let engine = open(file, Options::default())?;
        for _ in 0..rounds {
            measured[0].push(from_memory(&engine, plan.fill, duration).await?);
            measured[1].push(asked_and_from_memory(&engine, plan.fill, duration).await?);
        }
        Ok::<_, BenchError>(())
    })?;
    drop(one_core);
    progress.inc(2);
    progress.begin("replays from the file")?;
    sample::workers()?.block_on(async {
        let engine = Arc::new(open(file, Options { cache_bytes_max: 0, ..Options::default() })?);
        for _ in 0..rounds {
            measured[2].push(from_file(&engine, plan.fill, duration).await?);
        }
        Ok::<_, BenchError>(())
    })?;
    progress.inc(1);
    Ok(section(&measured))
}

fn open(file: &Path, options: Options) -> Result<Replayer, BenchError> {
    EngineArm::start(sqlite::Store::open(file, sqlite::Options::default())?, options)
}

/// One task that brings the same asks again and again; replays per second.
async fn from_memory(engine: &Replayer, keys: u64, duration: Duration) -> Result<f64, BenchError> {
    let asks: Result<Vec<BeginRequest<'_>>, _> =
        (0..keys.min(CACHED_KEYS)).map(|key| engine.ask(key)).collect();
    let asks = asks?;
    for ask in &asks {
        engine.replay(ask).await?;
    }
    let (began, mut replays) = (Instant::now(), 0);
    let mut next = asks.iter().cycle();
    while began.elapsed() < duration {
        for ask in next.by_ref().take(usize::try_from(BETWEEN_LOOKS).unwrap_or(usize::MAX)) {
            engine.replay(ask).await?;
        }
        replays += BETWEEN_LOOKS;
        yield_now().await;
    }
    Ok(float(replays) / began.elapsed().as_secs_f64())
}

/// The same, but each ask is made anew: names parsed, request fingerprinted.
async fn asked_and_from_memory(
    engine: &Replayer,
    keys: u64,
    duration: Duration,
) -> Result<f64, BenchError> {
    let (began, mut replays) = (Instant::now(), 0);
    while began.elapsed() < duration {
        for key in replays..replays + BETWEEN_LOOKS {
            engine.replay(&engine.ask(key % keys.min(CACHED_KEYS))?).await?;
        }
        replays += BETWEEN_LOOKS;
        yield_now().await;
    }
    Ok(float(replays) / began.elapsed().as_secs_f64())
}

/// Many callers that ask for keys all over the file.
async fn from_file(
    engine: &Arc<Replayer>,
    keys: u64,
    duration: Duration,
) -> Result<f64, BenchError> {
    let (began, mut tasks) = (Instant::now(), JoinSet::new());
    for caller in 0..FILE_CALLERS {
        let engine = Arc::clone(engine);
        tasks.spawn(async move {
            let (mut random, mut replays) = (fastrand::Rng::with_seed(caller), 0);
            while began.elapsed() < duration {
                engine.replay(&engine.ask(random.u64(..keys))?).await?;
                replays += 1;
            }
            Ok::<u64, BenchError>(replays)
        });
    }
    let mut replays = 0;
    while let Some(ended) = tasks.join_next().await {
        replays += ended??;
    }
    Ok(float(replays) / began.elapsed().as_secs_f64())
}

fn section(measured: &[Vec<f64>; 3]) -> ReportSection {
    let kinds = [
        ("replays/s from memory, one task on one core", Some(1_000_000.0)),
        ("the same, each request parsed and fingerprinted anew", None),
        ("replays/s from the file, 256 callers, no cache", Some(150_000.0)),
    ];
    let claims = kinds.iter().zip(measured).filter_map(|((what, bound), measured)| {
        let measured = MeasuredSpread::of(measured.iter().copied())?;
        let target = bound.map(FigureTarget::AtLeast);
        Some(BoundedFigure { what: (*what).to_owned(), measured, unit: "", target })
    });
    let claims: Vec<BoundedFigure> = claims.collect();
    let row = |claim: &BoundedFigure| vec![claim.what.clone(), number(claim.measured.median)];
    ReportSection {
        title: "Replays from a filled SQLite file".to_owned(),
        header: vec!["kind", "per second"],
        rows: claims.iter().map(row).collect(),
        claims,
        invalid: Vec::new(),
        plots: Vec::new(),
        data: json!({ "memory": measured[0], "asked_and_memory": measured[1], "file": measured[2] }),
    }
}
