//! All ways in turn, round after round, for each number of callers.

use hapax_services::redis::Sync;
use serde_json::json;

use super::{
    error::BenchError,
    figures::{Claim, Target},
    plan::Plan,
    progress::Progress,
    report::Section,
    request::ANSWER_BYTES,
    sample::{self, COLUMNS, Ground, Job, Measure, Sample, Way},
    turns::{Named as _, Turns},
};

const WAYS: [Way; 4] =
    [Way::Baseline, Way::Ours, Way::Redis(Sync::Always), Way::Redis(Sync::EverySecond)];

/// Whether Redis is measured beside a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    Redis,
    Nothing,
}

impl Beside {
    fn ways(self) -> &'static [Way] {
        match self {
            Self::Redis => &WAYS,
            Self::Nothing => &WAYS[..2],
        }
    }
}

/// How many measurements there will be.
pub(super) fn steps(plan: &Plan, beside: Beside) -> u64 {
    let measured = plan.callers.len() * beside.ways().len();
    u64::from(plan.rounds) * u64::try_from(measured).unwrap_or(u64::MAX)
}

/// Measures, and says how the ways compare.
pub(super) fn run(
    plan: &Plan,
    ground: Ground<'_>,
    beside: Beside,
    progress: &Progress,
) -> Result<Vec<Section>, BenchError> {
    let job = Job { statements: plan.statements, answer_bytes: ANSWER_BYTES };
    let mut tables: Vec<_> = plan.callers.iter().map(|_| Turns::new(beside.ways())).collect();
    Turns::take_all(plan.rounds, &mut tables, |place, way| {
        let callers = plan.callers[place];
        progress.begin(format!("{}, {callers} callers, {}", ground.name(), way.label()))?;
        let measure = Measure { duration: plan.duration, callers, at_half: true };
        let sample = sample::take(measure, job, ground, way);
        progress.inc(1);
        sample
    })?;
    let measured = plan.callers.iter().zip(&tables).filter(|(_, turns)| !turns.is_empty());
    Ok(measured.map(|(callers, turns)| section(turns, ground, *callers)).collect())
}

fn section(turns: &Turns<Way, Sample>, ground: Ground<'_>, callers: usize) -> Section {
    let title = match callers {
        1 => format!("{}, 1 caller", ground.name()),
        callers => format!("{}, {callers} callers", ground.name()),
    };
    let mut section = turns.section(title, COLUMNS, claims(turns, ground, callers));
    section.data["store"] = json!(ground.name());
    section.data["callers"] = json!(callers);
    section
}

fn claims(
    turns: &Turns<Way, Sample>,
    ground: Ground<'_>,
    callers: usize,
) -> impl Iterator<Item = Option<Claim>> {
    let targets = Targets::of(ground, callers);
    let compared: [(&str, Way, Of, Option<Target>); 5] = [
        ("requests/s", Way::Baseline, |sample| Some(sample.per_second), targets.per_second),
        ("median latency", Way::Baseline, |sample| Some(sample.p50_ms), targets.p50),
        ("p99 latency", Way::Baseline, |sample| Some(sample.p99_ms), targets.p99),
        ("requests/s", Way::Redis(Sync::Always), |sample| Some(sample.per_second), None),
        ("requests/s", Way::Redis(Sync::EverySecond), |sample| Some(sample.per_second), None),
    ];
    compared.into_iter().map(|(what, other, of, target)| {
        let measured = turns.ratio(Way::Ours, other, of)?;
        let what = format!("{what}, against {}", other.label());
        Some(Claim { what, measured, unit: "x", target })
    })
}

type Of = fn(&Sample) -> Option<f64>;

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
            (Ground::Postgres(_), 16) => Self { per_second: at_least(2.0), ..Self::default() },
            (Ground::Postgres(_), 64) => Self { per_second: at_least(5.0), ..Self::default() },
            (Ground::Postgres(_), 256) => {
                Self { per_second: at_least(10.0), p99: at_most(0.2), ..Self::default() }
            }
            (Ground::Sqlite(_), 256) => Self { per_second: at_least(20.0), ..Self::default() },
            (Ground::Postgres(_) | Ground::Sqlite(_), _) => Self::default(),
        }
    }
}
