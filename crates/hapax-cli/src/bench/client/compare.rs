//! All ways of a comparison in turn, round after round.

use std::path::Path;

use serde_json::json;

use super::{
    calls::{Caller, Calls},
    journalled::{Journalled, Keeper},
    plan::ClientPlan,
    upstream::Upstream,
    way::{COMPARISONS, Way},
};
use crate::bench::{
    BenchError,
    figures::{Claim, Column, Columns, Spread, Target},
    run::Run,
    sample::{self, Ground, Sample},
    turns::{Named as _, Turns},
};

/// How many measurements there will be.
pub(super) fn steps(plan: &ClientPlan) -> u64 {
    let ways: usize = COMPARISONS.iter().map(|comparison| comparison.ways.len()).sum();
    u64::from(plan.rounds) * u64::try_from(ways).unwrap_or(u64::MAX)
}

/// Measures, and says how the ways compare.
pub(super) fn run(plan: &ClientPlan, run: &mut Run) -> Result<(), BenchError> {
    let mut tables: Vec<Turns<Way, Sample>> =
        COMPARISONS.iter().map(|comparison| Turns::new(comparison.ways)).collect();
    Turns::take_all(plan.rounds, &mut tables, |_, way| {
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
fn take(plan: &ClientPlan, directory: &Path, way: Way) -> Result<Sample, BenchError> {
    let fresh = tempfile::tempdir_in(directory).map_err(BenchError::Directory)?;
    let runtime = sample::workers()?;
    let sample = runtime.block_on(measure(plan, fresh.path(), way));
    drop(runtime);
    sample
}

async fn measure(plan: &ClientPlan, fresh: &Path, way: Way) -> Result<Sample, BenchError> {
    let (path, sync) = (fresh.join("client.db"), plan.sync);
    let upstream = || Upstream::start(fresh);
    let calls = |caller: Caller| Ok::<_, BenchError>(Calls::new(caller, upstream()?));
    let journalled = |keeper, upstream| Journalled::new(keeper, upstream, path.clone());
    let (ground, duration, callers) = (Ground::Sqlite(fresh), plan.duration, plan.callers);
    match way {
        Way::Bare => sample::measure(ground, duration, callers, calls(Caller::bare()?)?).await,
        Way::Service => {
            sample::measure(ground, duration, callers, calls(Caller::service()?)?).await
        }
        Way::Layer => sample::measure(ground, duration, callers, calls(Caller::layer()?)?).await,
        Way::Client => sample::measure(ground, duration, callers, calls(Caller::client()?)?).await,
        Way::ByHand => {
            let arm = journalled(Keeper::by_hand(&path, sync)?, None);
            sample::measure(ground, duration, callers, arm).await
        }
        Way::Journal => {
            let arm = journalled(Keeper::journal(&path, sync)?, None);
            sample::measure(ground, duration, callers, arm).await
        }
        Way::ByHandCall => {
            let arm = journalled(Keeper::by_hand(&path, sync)?, Some(upstream()?));
            sample::measure(ground, duration, callers, arm).await
        }
        Way::JournalCall => {
            let arm = journalled(Keeper::client(&path, sync)?, Some(upstream()?));
            sample::measure(ground, duration, callers, arm).await
        }
    }
}

/// One way against another, and what should come of it.
struct Wanted {
    way: Way,
    against: Way,
    measure: Measure,
    target: Option<Target>,
}

impl Wanted {
    fn claim(&self, turns: &Turns<Way, Sample>) -> Option<Claim> {
        let Self { way, against, measure, target } = self;
        let (ours, theirs) = (way.label(), against.label());
        let (what, measured, unit) = match measure {
            Measure::Rate => (
                format!("{ours}: requests/s against {theirs}"),
                turns.ratio(*way, *against, |sample| Some(sample.per_second)),
                "x",
            ),
            Measure::MoreCpu => (
                format!("{ours}: more CPU per call than {theirs}"),
                Spread::of(
                    turns.rounds(*way, *against).map(|(ours, theirs)| ours.cpu_us - theirs.cpu_us),
                ),
                " us",
            ),
        };
        Some(Claim { what, measured: measured?, unit, target: *target })
    }
}

enum Measure {
    Rate,
    MoreCpu,
}

const CLAIMS: &[Wanted] = &[
    Wanted {
        way: Way::Layer,
        against: Way::Bare,
        measure: Measure::Rate,
        target: Some(Target::AtLeast(0.97)),
    },
    Wanted {
        way: Way::Layer,
        against: Way::Bare,
        measure: Measure::MoreCpu,
        target: Some(Target::AtMost(2.0)),
    },
    Wanted { way: Way::Layer, against: Way::Service, measure: Measure::MoreCpu, target: None },
    Wanted { way: Way::Client, against: Way::Bare, measure: Measure::Rate, target: None },
    Wanted { way: Way::Client, against: Way::Bare, measure: Measure::MoreCpu, target: None },
    Wanted {
        way: Way::Journal,
        against: Way::ByHand,
        measure: Measure::Rate,
        target: Some(Target::AtLeast(10.0)),
    },
    Wanted {
        way: Way::JournalCall,
        against: Way::ByHandCall,
        measure: Measure::Rate,
        target: Some(Target::AtLeast(10.0)),
    },
];

const COLUMNS: &Columns<Sample> = &[
    ("requests/s", Column::Median(|sample| Some(sample.per_second))),
    ("range", Column::Range(|sample| Some(sample.per_second))),
    ("p50 ms", Column::Median(|sample| Some(sample.p50_ms))),
    ("p99 ms", Column::Median(|sample| Some(sample.p99_ms))),
    ("p99.9 ms", Column::Median(|sample| Some(sample.p999_ms))),
    ("client CPU us", Column::Median(|sample| Some(sample.cpu_us))),
    ("upstream CPU us", Column::Median(|sample| sample.server_cpu_us)),
    // Two writes, which may share commits with others.
    ("commits", Column::Median(|sample| sample.writes_per_commit.map(|writes| 2.0 / writes))),
];
