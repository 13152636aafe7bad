//! All ways of a comparison in turn, round after round.

use std::path::Path;

use indicatif::ProgressBar;
use serde_json::{Map, Value, json};

use super::{
    calls::{Caller, Calls},
    journalled::{Journalled, Keeper},
    plan::ClientPlan,
    upstream::Upstream,
    way::{COMPARISONS, Comparison, Way},
};
use crate::bench::{
    BenchError,
    figures::{Claim, Column, Columns, Spread, Target, header, row},
    report::Section,
    sample::{self, Ground, Sample},
    turns::Figures as _,
};

/// How many measurements there will be.
pub(super) fn steps(plan: &ClientPlan) -> u64 {
    let ways: usize = COMPARISONS.iter().map(|comparison| comparison.ways.len()).sum();
    u64::from(plan.rounds) * u64::try_from(ways).unwrap_or(u64::MAX)
}

/// Measures, and says how the ways compare.
pub(super) fn run(
    plan: &ClientPlan,
    directory: &Path,
    progress: &ProgressBar,
) -> Result<Vec<Section>, BenchError> {
    let mut tables: Vec<Table> = COMPARISONS.iter().map(Table::new).collect();
    for round in 0..plan.rounds {
        for table in &mut tables {
            let ways = table.of.ways;
            for at in 0..ways.len() {
                // Who goes first changes, so that nobody always finds the machine as one other left it.
                let at = (at + round as usize) % ways.len();
                progress.set_message(ways[at].label());
                table.samples[at].push(take(plan, directory, ways[at])?);
                progress.inc(1);
            }
        }
    }
    Ok(tables.iter().map(|table| table.section(plan.callers)).collect())
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

/// Everything measured for one comparison.
struct Table {
    of: &'static Comparison,
    samples: Vec<Vec<Sample>>,
}

impl Table {
    fn new(of: &'static Comparison) -> Self {
        Self { of, samples: of.ways.iter().map(|_| Vec::new()).collect() }
    }

    fn ways(&self) -> impl Iterator<Item = (Way, &Vec<Sample>)> {
        self.of.ways.iter().copied().zip(&self.samples)
    }

    fn section(&self, callers: usize) -> Section {
        let invalid = self.ways().flat_map(|(way, samples)| {
            let reasons = samples.iter().filter_map(|sample| sample.invalid.as_ref());
            reasons.map(move |reason| format!("{}: {reason}", way.label()))
        });
        let data = self.ways().map(|(way, samples)| {
            (way.label().to_owned(), samples.iter().map(|sample| sample.json()).collect())
        });
        let data: Map<String, Value> = data.collect();
        Section {
            title: match callers {
                1 => format!("{}, 1 caller", self.of.title),
                callers => format!("{}, {callers} callers", self.of.title),
            },
            header: header(COLUMNS),
            rows: self.ways().map(|(way, samples)| row(way.label(), samples, COLUMNS)).collect(),
            claims: CLAIMS.iter().filter_map(|wanted| self.claim(wanted)).collect(),
            invalid: invalid.collect(),
            data: json!({ "callers": callers, "ways": data }),
        }
    }

    /// Each round is compared with itself: both ways saw the same machine.
    fn claim(&self, wanted: &Wanted) -> Option<Claim> {
        let samples = |way| self.ways().find(|(known, _)| *known == way).map(|(_, found)| found);
        let rounds = samples(wanted.way)?.iter().zip(samples(wanted.against)?);
        let (ours, against) = (wanted.way.label(), wanted.against.label());
        let (what, measured, unit) = match wanted.measure {
            Measure::Rate => (
                format!("{ours}: requests/s against {against}"),
                Spread::of(rounds.map(|(ours, theirs)| ours.per_second / theirs.per_second)),
                "x",
            ),
            Measure::MoreCpu => (
                format!("{ours}: more CPU per call than {against}"),
                Spread::of(rounds.map(|(ours, theirs)| ours.cpu_us - theirs.cpu_us)),
                " us",
            ),
        };
        Some(Claim { what, measured: measured?, unit, target: wanted.target })
    }
}

/// One way against another, and what should come of it.
struct Wanted {
    way: Way,
    against: Way,
    measure: Measure,
    target: Option<Target>,
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
    ("client CPU us", Column::Median(|sample| Some(sample.cpu_us))),
    ("upstream CPU us", Column::Median(|sample| sample.server_cpu_us)),
    // Two writes, which may share commits with others.
    ("commits", Column::Median(|sample| sample.writes_per_commit.map(|writes| 2.0 / writes))),
];
