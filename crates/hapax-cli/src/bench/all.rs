//! `hapax bench all`: every bench in one run, and one report.

use super::{
    BenchError, Verdict, client::ClientPlan, http::HttpPlan, outbox::OutboxPlan, plan::Plan,
    run::Run, tx::TxPlan,
};
use super::{client, http, outbox, store, tx};
use crate::args::{
    AllArgs, ClientBenchArgs, HttpArgs, MeasureArgs, OutboxBenchArgs, Statements, StoreArgs, TxArgs,
};

type Bench<'a> = (&'static str, Box<dyn Fn(&mut Run) -> Result<(), BenchError> + 'a>);

/// Measures everything, one bench after the other. What cannot be measured is named, and does not
/// keep the others from it.
pub(super) fn run(raw: &AllArgs) -> Result<Verdict, BenchError> {
    let benches = benches(raw)?;
    let count = benches.len();
    let mut run = Run::start("all")?;
    for (place, (name, measure)) in benches.iter().enumerate() {
        run.bench(name, format!("bench {} of {count}, {name}:", place + 1));
        match measure(&mut run) {
            Ok(()) => {}
            Err(BenchError::CutShort) => break,
            Err(error) => run.miss(name, &error),
        }
    }
    run.finish(&raw.measure.report)
}

/// Every bench with its plan: all plans are resolved before anything is measured.
fn benches(raw: &AllArgs) -> Result<Vec<Bench<'static>>, BenchError> {
    let measure = &raw.measure;
    let pace = if measure.quick { &QUICK } else { &FULL };
    let store = Plan::resolve(&StoreArgs {
        measure: pace.store.applied_to(measure),
        statements: Statements::Prepared,
        callers: Some(pace.callers.to_vec()),
        fill: Some(pace.fill),
    })?;
    let tx = TxPlan::resolve(&TxArgs {
        measure: pace.tx.applied_to(measure),
        callers: Some(pace.callers.to_vec()),
    })?;
    let http = HttpPlan::resolve(&HttpArgs {
        ways: None,
        memory: false,
        measure: pace.http.applied_to(measure),
        connections: Some(pace.connections.to_vec()),
    })?;
    let outbox = OutboxPlan::resolve(&OutboxBenchArgs {
        measure: pace.outbox.applied_to(measure),
        parts: None,
        events: Some(pace.events),
        callers: 64,
        rate: 1000,
        hold: Some(pace.hold),
    })?;
    let measured = pace.client.applied_to(measure);
    let client = ClientPlan::resolve(&ClientBenchArgs {
        callers: 64,
        sync_us: 0,
        quick: measured.quick,
        rounds: measured.rounds,
        seconds: measured.seconds,
        report: measured.report,
    });
    Ok(vec![
        ("store", Box::new(move |run| store::measure(&store, run))),
        ("tx", Box::new(move |run| tx::measure(&tx, run))),
        ("http", Box::new(move |run| http::measure(&http, run))),
        ("outbox", Box::new(move |run| outbox::measure(&outbox, run))),
        ("client", Box::new(move |run| client::measure(&client, run))),
    ])
}

/// How much each bench takes of a run of all.
struct Pace {
    store: Rounds,
    tx: Rounds,
    http: Rounds,
    outbox: Rounds,
    client: Rounds,
    callers: &'static [usize],
    connections: &'static [usize],
    fill: u64,
    events: u64,
    hold: f64,
}

struct Rounds {
    rounds: u32,
    seconds: f64,
}

impl Rounds {
    /// What was typed comes first.
    fn applied_to(&self, measure: &MeasureArgs) -> MeasureArgs {
        MeasureArgs {
            rounds: measure.rounds.or(Some(self.rounds)),
            seconds: measure.seconds.or(Some(self.seconds)),
            ..measure.clone()
        }
    }
}

/// About twenty minutes on two cores.
const FULL: Pace = Pace {
    store: Rounds { rounds: 5, seconds: 2.0 },
    tx: Rounds { rounds: 5, seconds: 2.0 },
    http: Rounds { rounds: 5, seconds: 2.0 },
    outbox: Rounds { rounds: 5, seconds: 2.0 },
    client: Rounds { rounds: 5, seconds: 1.0 },
    callers: &[1, 16, 64, 256],
    connections: &[64, 256],
    fill: 1_000_000,
    events: 100_000,
    hold: 20.0,
};

/// Under two minutes on two cores.
const QUICK: Pace = Pace {
    store: Rounds { rounds: 1, seconds: 0.4 },
    tx: Rounds { rounds: 1, seconds: 0.4 },
    http: Rounds { rounds: 1, seconds: 0.4 },
    outbox: Rounds { rounds: 1, seconds: 0.5 },
    client: Rounds { rounds: 1, seconds: 0.3 },
    callers: &[64],
    connections: &[64],
    fill: 20_000,
    events: 20_000,
    hold: 1.0,
};
