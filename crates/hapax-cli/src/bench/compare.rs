//! Both ways in turn, round after round, for each number of callers.

use serde_json::json;

use super::{
    error::BenchError,
    figures::{Claim, Column, Columns, Spread, Target, header, row},
    plan::Plan,
    progress::Progress,
    report::Section,
    sample::{self, Ground, Sample, Way},
    turns::Figures as _,
};

/// How many measurements there will be.
pub(super) fn steps(plan: &Plan) -> u64 {
    let callers = u64::try_from(plan.callers.len()).unwrap_or(u64::MAX);
    u64::from(plan.rounds) * callers * 2
}

/// Measures, and says how the two ways compare.
pub(super) fn run(
    plan: &Plan,
    ground: Ground<'_>,
    progress: &Progress,
) -> Result<Vec<Section>, BenchError> {
    let mut pairs: Vec<Pair> = plan.callers.iter().map(|callers| Pair::new(*callers)).collect();
    for round in 0..plan.rounds {
        // Who goes first changes, so that neither always finds the machine as the other left it.
        let order = match round % 2 {
            0 => [Way::Baseline, Way::Ours],
            _ => [Way::Ours, Way::Baseline],
        };
        for pair in &mut pairs {
            for way in order {
                let (store, callers) = (name(ground), pair.callers);
                progress.begin(format!("{store}, {callers} callers, {}", label(way)))?;
                let sample = sample::take(plan, ground, way, callers)?;
                match way {
                    Way::Baseline => pair.baseline.push(sample),
                    Way::Ours => pair.ours.push(sample),
                }
                progress.inc(1);
            }
        }
    }
    Ok(pairs.iter().map(|pair| pair.section(ground)).collect())
}

struct Pair {
    callers: usize,
    baseline: Vec<Sample>,
    ours: Vec<Sample>,
}

impl Pair {
    fn new(callers: usize) -> Self {
        Self { callers, baseline: Vec::new(), ours: Vec::new() }
    }

    fn section(&self, ground: Ground<'_>) -> Section {
        let ways = [(Way::Baseline, &self.baseline), (Way::Ours, &self.ours)];
        let invalid = ways.iter().flat_map(|(way, samples)| {
            let reasons = samples.iter().filter_map(|sample| sample.invalid.as_ref());
            reasons.map(|reason| format!("{}: {reason}", label(*way)))
        });
        Section {
            title: match self.callers {
                1 => format!("{}, 1 caller", name(ground)),
                callers => format!("{}, {callers} callers", name(ground)),
            },
            header: header(COLUMNS),
            rows: ways.iter().map(|(way, samples)| row(label(*way), samples, COLUMNS)).collect(),
            claims: self.claims(ground),
            invalid: invalid.collect(),
            plots: Vec::new(),
            data: json!({
                "store": name(ground),
                "callers": self.callers,
                "baseline": self.baseline.iter().map(|sample| sample.json()).collect::<Vec<_>>(),
                "hapax": self.ours.iter().map(|sample| sample.json()).collect::<Vec<_>>(),
            }),
        }
    }

    /// Each round is compared with itself: both ways saw the same machine.
    fn claims(&self, ground: Ground<'_>) -> Vec<Claim> {
        let targets = Targets::of(ground, self.callers);
        let measures: [(&str, Measure, Option<Target>); 3] = [
            ("requests/s, against hand-written", |sample| sample.per_second, targets.per_second),
            ("median latency, against hand-written", |sample| sample.p50_ms, targets.p50),
            ("p99 latency, against hand-written", |sample| sample.p99_ms, targets.p99),
        ];
        let claims = measures.into_iter().filter_map(|(what, measure, target)| {
            let rounds = self.ours.iter().zip(&self.baseline);
            let ratios = rounds.map(|(ours, baseline)| measure(ours) / measure(baseline));
            let measured = Spread::of(ratios)?;
            Some(Claim { what: what.to_owned(), measured, unit: "x", target })
        });
        claims.collect()
    }
}

type Measure = fn(&Sample) -> f64;

/// What each ratio should be.
#[derive(Default)]
struct Targets {
    per_second: Option<Target>,
    p50: Option<Target>,
    p99: Option<Target>,
}

impl Targets {
    fn of(ground: Ground<'_>, callers: usize) -> Self {
        let at_least = |bound| Some(Target::AtLeast(bound));
        let at_most = |bound| Some(Target::AtMost(bound));
        match (ground, callers) {
            (Ground::Postgres(_), 1) => Self { p50: at_most(1.15), ..Self::default() },
            (Ground::Postgres(_), 16) => Self { per_second: at_least(1.7), ..Self::default() },
            (Ground::Postgres(_), 64) => Self { per_second: at_least(4.5), ..Self::default() },
            (Ground::Postgres(_), 256) => {
                Self { per_second: at_least(8.0), p99: at_most(0.25), ..Self::default() }
            }
            (Ground::Sqlite(_), 256) => Self { per_second: at_least(15.0), ..Self::default() },
            (Ground::Postgres(_) | Ground::Sqlite(_), _) => Self::default(),
        }
    }
}

const COLUMNS: &Columns<Sample> = &[
    ("requests/s", Column::Median(|sample| Some(sample.per_second))),
    ("range", Column::Range(|sample| Some(sample.per_second))),
    ("p50 ms", Column::Median(|sample| Some(sample.p50_ms))),
    ("p99 ms", Column::Median(|sample| Some(sample.p99_ms))),
    ("CPU us/request", Column::Median(|sample| Some(sample.cpu_us))),
    ("server CPU us", Column::Median(|sample| sample.server_cpu_us)),
    ("log bytes", Column::Median(|sample| sample.log_bytes)),
    ("writes/commit", Column::Median(|sample| sample.writes_per_commit)),
];

fn name(ground: Ground<'_>) -> &'static str {
    match ground {
        Ground::Sqlite(_) => "SQLite",
        Ground::Postgres(_) => "PostgreSQL",
    }
}

fn label(way: Way) -> &'static str {
    match way {
        Way::Baseline => "hand-written",
        Way::Ours => "hapax",
    }
}
