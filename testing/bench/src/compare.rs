//! All ways in turn, round after round, for each number of callers.

use hapax_services::redis::Sync;
use serde_json::json;

use super::{
    error::BenchError,
    figures::{BoundedFigure, FigureTarget},
    plan::RunPlan,
    progress::BenchProgress,
    report::ReportSection,
    request::ANSWER_BYTES,
    sample::{self, COLUMNS, Measure, StoreGround, StoreSample, StoreWay, WayJob},
    turns::{NamedWay as _, WayTurns},
};

const WAYS: [StoreWay; 4] = [
    StoreWay::Baseline,
    StoreWay::Ours,
    StoreWay::Redis(Sync::Always),
    StoreWay::Redis(Sync::EverySecond),
];

/// Whether Redis is measured beside a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RedisBeside {
    Redis,
    Nothing,
}

impl RedisBeside {
    fn ways(self) -> &'static [StoreWay] {
        match self {
            Self::Redis => &WAYS,
            Self::Nothing => &WAYS[..2],
        }
    }
}

/// How many measurements there will be.
pub(super) fn steps(plan: &RunPlan, beside: RedisBeside) -> u64 {
    let measured = plan.callers.len() * beside.ways().len();
    u64::from(plan.rounds) * u64::try_from(measured).unwrap_or(u64::MAX)
}

/// Measures, and says how the ways compare.
pub(super) fn run(
    plan: &RunPlan,
    ground: StoreGround<'_>,
    beside: RedisBeside,
    progress: &BenchProgress,
) -> Result<Vec<ReportSection>, BenchError> {
    let job = WayJob { statements: plan.statements, answer_bytes: ANSWER_BYTES };
    let mut tables: Vec<_> = plan.callers.iter().map(|_| WayTurns::new(beside.ways())).collect();
    WayTurns::take_all(plan.rounds, &mut tables, |place, way| {
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

fn section(
    turns: &WayTurns<StoreWay, StoreSample>,
    ground: StoreGround<'_>,
    callers: usize,
) -> ReportSection {
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
    turns: &WayTurns<StoreWay, StoreSample>,
    ground: StoreGround<'_>,
    callers: usize,
) -> impl Iterator<Item = Option<BoundedFigure>> {
    let targets = Targets::of(ground, callers);
    let compared: [(&str, StoreWay, Of, Option<FigureTarget>); 5] = [
        ("requests/s", StoreWay::Baseline, |sample| Some(sample.per_second), targets.per_second),
        ("median latency", StoreWay::Baseline, |sample| Some(sample.p50_ms), targets.p50),
        ("p99 latency", StoreWay::Baseline, |sample| Some(sample.p99_ms), targets.p99),
        ("requests/s", StoreWay::Redis(Sync::Always), |sample| Some(sample.per_second), None),
        ("requests/s", StoreWay::Redis(Sync::EverySecond), |sample| Some(sample.per_second), None),
    ];
    compared.into_iter().map(|(what, other, of, target)| {
        let measured = turns.ratio(StoreWay::Ours, other, of)?;
        let what = format!("{what}, against {}", other.label());
        Some(BoundedFigure { what, measured, unit: "x", target })
    })
}

type Of = fn(&StoreSample) -> Option<f64>;

/// What each ratio should be.
#[derive(Default)]
struct Targets {
    per_second: Option<FigureTarget>,
    p50: Option<FigureTarget>,
    p99: Option<FigureTarget>,
}

impl Targets {
    fn of(ground: StoreGround<'_>, callers: usize) -> Self {
        let at_least = |bound| Some(FigureTarget::AtLeast(bound));
        let at_most = |bound| Some(FigureTarget::AtMost(bound));
        match (ground, callers) {
            (StoreGround::Postgres(_), 1) => Self { p50: at_most(1.15), ..Self::default() },
            (StoreGround::Postgres(_), 16) => Self { per_second: at_least(1.8), ..Self::default() },
            (StoreGround::Postgres(_), 64) => Self { per_second: at_least(4.0), ..Self::default() },
            (StoreGround::Postgres(_), 256) => {
                Self { per_second: at_least(6.5), p99: at_most(0.2), ..Self::default() }
            }
            (StoreGround::Sqlite(_), 256) => Self { per_second: at_least(20.0), ..Self::default() },
            (StoreGround::Postgres(_) | StoreGround::Sqlite(_), _) => Self::default(),
        }
    }
}
