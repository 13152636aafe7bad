//! All ways of a comparison in turn, round after round.

use std::path::Path;

use serde_json::json;

use super::{
    calls::{CallMaker, Calls},
    journalled::{Journalled, Keeper},
    plan::ClientPlan,
    upstream::BenchUpstream,
    way::{COMPARISONS, CallWay},
};
use crate::{
    BenchError,
    figures::{BoundedFigure, Columns, FigureTarget, MeasuredSpread, SampleColumn},
    run::BenchRun,
    sample::{self, StoreGround, StoreSample},
    turns::{NamedWay as _, WayTurns},
};

/// How many measurements there will be.
pub(super) fn steps(plan: &ClientPlan) -> u64 {
    let ways: usize = COMPARISONS.iter().map(|comparison| comparison.ways.len()).sum();
    u64::from(plan.rounds) * u64::try_from(ways).unwrap_or(u64::MAX)
}

/// Measures, and says how the ways compare.
pub(super) fn run(plan: &ClientPlan, run: &mut BenchRun) -> Result<(), BenchError> {
    let mut tables: Vec<WayTurns<CallWay, StoreSample>> =
        COMPARISONS.iter().map(|comparison| WayTurns::new(comparison.ways)).collect();
    WayTurns::take_all(plan.rounds, &mut tables, |_, way| {
        run.progress.begin(way.label())?;
        let sample = take(plan, run.directory(), way);
        run.progress.inc(1);
        sample
    })?;
    let measured = COMPARISONS.iter().zip(&tables).filter(|(_, turns)| !turns.is_empty());
    for (comparison, turns) in measured {
        let claims = CLAIMS.iter().map(|wanted| wanted.claim(turns));
        let mut section = turns.section(titled(comparison.title, plan.callers), COLUMNS, claims);
        section.data["callers"] = json!(plan.callers);
        run.add(section);
    }
    Ok(())
}

fn titled(title: &str, callers: usize) -> String {
    match callers {
        1 => format!("{title}, 1 caller"),
        callers => format!("{title}, {callers} callers"),
    }
}

/// Measures one way with a fresh upstream and a fresh journal, on threads of its own.
fn take(plan: &ClientPlan, directory: &Path, way: CallWay) -> Result<StoreSample, BenchError> {
    let fresh = tempfile::tempdir_in(directory).map_err(BenchError::Directory)?;
    let runtime = sample::workers()?;
    let sample = runtime.block_on(measure(plan, fresh.path(), way));
    drop(runtime);
    sample
}

async fn measure(plan: &ClientPlan, fresh: &Path, way: CallWay) -> Result<StoreSample, BenchError> {
    let (path, sync) = (fresh.join("client.db"), plan.sync);
    let upstream = || BenchUpstream::start(fresh);
    let calls = |caller: CallMaker| Ok::<_, BenchError>(Calls::new(caller, upstream()?));
    let journalled = |keeper, upstream| Journalled::new(keeper, upstream, path.clone());
    let (ground, duration, callers) = (StoreGround::Sqlite(fresh), plan.duration, plan.callers);
    match way {
        CallWay::Bare => {
            sample::measure(ground, duration, callers, calls(CallMaker::bare()?)?).await
        }
        CallWay::Service => {
            sample::measure(ground, duration, callers, calls(CallMaker::service()?)?).await
        }
        CallWay::Layer => {
            sample::measure(ground, duration, callers, calls(CallMaker::layer()?)?).await
        }
        CallWay::Client => {
            sample::measure(ground, duration, callers, calls(CallMaker::client()?)?).await
        }
        CallWay::ByHand => {
            let arm = journalled(Keeper::by_hand(&path, sync)?, None);
            sample::measure(ground, duration, callers, arm).await
        }
        CallWay::Journal => {
            let arm = journalled(Keeper::journal(&path, sync)?, None);
            sample::measure(ground, duration, callers, arm).await
        }
        CallWay::ByHandCall => {
            let arm = journalled(Keeper::by_hand(&path, sync)?, Some(upstream()?));
            sample::measure(ground, duration, callers, arm).await
        }
        CallWay::JournalCall => {
            let arm = journalled(Keeper::client(&path, sync)?, Some(upstream()?));
            sample::measure(ground, duration, callers, arm).await
        }
    }
}

/// One way against another, and what should come of it.
struct WantedRatio {
    way: CallWay,
    against: CallWay,
    measure: CallMeasure,
    target: Option<FigureTarget>,
}

impl WantedRatio {
    fn claim(&self, turns: &WayTurns<CallWay, StoreSample>) -> Option<BoundedFigure> {
        let Self { way, against, measure, target } = self;
        let (ours, theirs) = (way.label(), against.label());
        let (what, measured, unit) = match measure {
            CallMeasure::Rate => (
                format!("{ours}: requests/s against {theirs}"),
                turns.ratio(*way, *against, |sample| Some(sample.per_second)),
                "x",
            ),
            CallMeasure::MoreCpu => (
                format!("{ours}: more CPU per call than {theirs}"),
                MeasuredSpread::of(
                    turns.rounds(*way, *against).map(|(ours, theirs)| ours.cpu_us - theirs.cpu_us),
                ),
                " us",
            ),
        };
        Some(BoundedFigure { what, measured: measured?, unit, target: *target })
    }
}

enum CallMeasure {
    Rate,
    MoreCpu,
}

const CLAIMS: &[WantedRatio] = &[
    WantedRatio {
        way: CallWay::Layer,
        against: CallWay::Bare,
        measure: CallMeasure::Rate,
        target: Some(FigureTarget::AtLeast(0.97)),
    },
    WantedRatio {
        way: CallWay::Layer,
        against: CallWay::Bare,
        measure: CallMeasure::MoreCpu,
        target: Some(FigureTarget::AtMost(2.0)),
    },
    WantedRatio {
        way: CallWay::Layer,
        against: CallWay::Service,
        measure: CallMeasure::MoreCpu,
        target: None,
    },
    WantedRatio {
        way: CallWay::Client,
        against: CallWay::Bare,
        measure: CallMeasure::Rate,
        target: None,
    },
    WantedRatio {
        way: CallWay::Client,
        against: CallWay::Bare,
        measure: CallMeasure::MoreCpu,
        target: None,
    },
    WantedRatio {
        way: CallWay::Journal,
        against: CallWay::ByHand,
        measure: CallMeasure::Rate,
        target: Some(FigureTarget::AtLeast(10.0)),
    },
    WantedRatio {
        way: CallWay::JournalCall,
        against: CallWay::ByHandCall,
        measure: CallMeasure::Rate,
        target: Some(FigureTarget::AtLeast(10.0)),
    },
];

const COLUMNS: &Columns<StoreSample> = &[
    ("requests/s", SampleColumn::Median(|sample| Some(sample.per_second))),
    ("range", SampleColumn::Range(|sample| Some(sample.per_second))),
    ("p50 ms", SampleColumn::Median(|sample| Some(sample.p50_ms))),
    ("p99 ms", SampleColumn::Median(|sample| Some(sample.p99_ms))),
    ("p99.9 ms", SampleColumn::Median(|sample| Some(sample.p999_ms))),
    ("client CPU us", SampleColumn::Median(|sample| Some(sample.cpu_us))),
    ("upstream CPU us", SampleColumn::Median(|sample| sample.server_cpu_us)),
    // Two writes, which may share commits with others.
    ("commits", SampleColumn::Median(|sample| sample.writes_per_commit.map(|writes| 2.0 / writes))),
];
