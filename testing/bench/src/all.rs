//! `cargo xtask bench all`: every bench in one run, and one report.

use clap::ValueEnum as _;

use super::{
    BenchError, FiguresVerdict,
    client::{self, ClientPlan},
    curves::{self, CurvesPlan},
    http::{self, HttpPlan},
    operating::{self, OperatingPlan},
    outbox::{self, OutboxPlan},
    plan::RunPlan,
    run::BenchRun,
    store,
    tx::{self, TxPlan},
};
use crate::args::{
    AllArgs, BenchName, ClientBenchArgs, CurvesArgs, HttpArgs, MeasureArgs, OperatingArgs,
    OutboxBenchArgs, Statements, StoreArgs, TxArgs,
};

/// Measures everything, one bench after the other. What cannot be measured is named, and does not
/// keep the others from it.
pub(super) fn run(raw: &AllArgs) -> Result<FiguresVerdict, BenchError> {
    let wanted = raw.only.as_deref().unwrap_or_else(BenchName::value_variants);
    // All plans are resolved before anything is measured.
    let plans: Result<Vec<_>, _> =
        wanted.iter().map(|name| BenchPlan::resolve(*name, raw)).collect();
    let (plans, count) = (plans?, wanted.len());
    let mut run = BenchRun::start("all")?;
    for (place, plan) in plans.iter().enumerate() {
        let name = plan.name();
        run.bench(name, format!("bench {} of {count}, {name}:", place + 1));
        match plan.measure(&mut run) {
            Ok(()) => {}
            Err(BenchError::CutShort) => break,
            Err(error) => run.miss(name, &error),
        }
    }
    run.finish(&raw.measure.report)
}

/// One bench, with every default filled in.
enum BenchPlan {
    Store(RunPlan),
    Tx(TxPlan),
    Http(HttpPlan),
    Outbox(OutboxPlan),
    Client(ClientPlan),
    Operating(OperatingPlan),
    Curves(CurvesPlan),
}

impl BenchPlan {
    fn resolve(name: BenchName, raw: &AllArgs) -> Result<Self, BenchError> {
        let measure = &raw.measure;
        let pace = if measure.quick { &QUICK } else { &FULL };
        Ok(match name {
            BenchName::Store => Self::Store(RunPlan::resolve(&StoreArgs {
                measure: pace.store.applied_to(measure),
                statements: Statements::Prepared,
                callers: Some(pace.callers.to_vec()),
                fill: Some(pace.fill),
            })?),
            BenchName::Tx => Self::Tx(TxPlan::resolve(&TxArgs {
                measure: pace.tx.applied_to(measure),
                callers: Some(pace.callers.to_vec()),
            })?),
            BenchName::Http => Self::Http(HttpPlan::resolve(&HttpArgs {
                ways: None,
                memory: false,
                measure: pace.http.applied_to(measure),
                connections: Some(pace.connections.to_vec()),
                program: raw.program.clone(),
            })?),
            BenchName::Outbox => Self::Outbox(OutboxPlan::resolve(&OutboxBenchArgs {
                measure: pace.outbox.applied_to(measure),
                parts: None,
                events: Some(pace.events),
                callers: 64,
                rate: 1000,
                hold: Some(pace.hold),
            })?),
            BenchName::Client => {
                let MeasureArgs { quick, rounds, seconds, report, .. } =
                    pace.client.applied_to(measure);
                let (callers, sync_us) = (64, 0);
                let raw = ClientBenchArgs { callers, sync_us, quick, rounds, seconds, report };
                Self::Client(ClientPlan::resolve(&raw))
            }
            BenchName::Operating => Self::Operating(OperatingPlan::resolve(&OperatingArgs {
                parts: None,
                measure: pace.operating.applied_to(measure),
                rate: 10_000,
                idle: Some(pace.idle),
                program: raw.program.clone(),
            })?),
            BenchName::Curves => Self::Curves(CurvesPlan::resolve(&CurvesArgs {
                measure: pace.curves.applied_to(measure),
                parts: None,
                stores: None,
                keys_max: Some(pace.keys_max),
            })?),
        })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Store(_) => "store",
            Self::Tx(_) => "tx",
            Self::Http(_) => "http",
            Self::Outbox(_) => "outbox",
            Self::Client(_) => "client",
            Self::Operating(_) => "operating",
            Self::Curves(_) => "curves",
        }
    }

    fn measure(&self, run: &mut BenchRun) -> Result<(), BenchError> {
        match self {
            Self::Store(plan) => store::measure(plan, run),
            Self::Tx(plan) => tx::measure(plan, run),
            Self::Http(plan) => http::measure(plan, run),
            Self::Outbox(plan) => outbox::measure(plan, run),
            Self::Client(plan) => client::measure(plan, run),
            Self::Operating(plan) => operating::measure(plan, run),
            Self::Curves(plan) => curves::measure(plan, run),
        }
    }
}

/// How much each bench takes of a run of all.
struct RunShare {
    store: RoundCounts,
    tx: RoundCounts,
    http: RoundCounts,
    outbox: RoundCounts,
    client: RoundCounts,
    operating: RoundCounts,
    curves: RoundCounts,
    /// How many keys the largest store of a curve holds.
    keys_max: u64,
    callers: &'static [usize],
    connections: &'static [usize],
    fill: u64,
    events: u64,
    hold: f64,
    idle: f64,
}

struct RoundCounts {
    rounds: u32,
    seconds: f64,
}

impl RoundCounts {
    /// What was typed comes first.
    fn applied_to(&self, measure: &MeasureArgs) -> MeasureArgs {
        MeasureArgs {
            rounds: measure.rounds.or(Some(self.rounds)),
            seconds: measure.seconds.or(Some(self.seconds)),
            ..measure.clone()
        }
    }
}

/// About twenty-five minutes on two cores.
const FULL: RunShare = RunShare {
    store: RoundCounts { rounds: 5, seconds: 2.0 },
    tx: RoundCounts { rounds: 5, seconds: 2.0 },
    http: RoundCounts { rounds: 5, seconds: 2.0 },
    outbox: RoundCounts { rounds: 5, seconds: 2.0 },
    client: RoundCounts { rounds: 5, seconds: 1.0 },
    operating: RoundCounts { rounds: 5, seconds: 2.0 },
    curves: RoundCounts { rounds: 3, seconds: 1.0 },
    keys_max: 1_000_000,
    callers: &[1, 16, 64, 256],
    connections: &[64, 256],
    fill: 1_000_000,
    events: 100_000,
    hold: 20.0,
    idle: 20.0,
};

/// Under two minutes on two cores.
const QUICK: RunShare = RunShare {
    store: RoundCounts { rounds: 1, seconds: 0.4 },
    tx: RoundCounts { rounds: 1, seconds: 0.4 },
    http: RoundCounts { rounds: 1, seconds: 0.4 },
    outbox: RoundCounts { rounds: 1, seconds: 0.5 },
    client: RoundCounts { rounds: 1, seconds: 0.3 },
    operating: RoundCounts { rounds: 1, seconds: 0.4 },
    curves: RoundCounts { rounds: 1, seconds: 0.2 },
    keys_max: 20_000,
    callers: &[64],
    connections: &[64],
    fill: 20_000,
    events: 20_000,
    hold: 1.0,
    idle: 1.0,
};
