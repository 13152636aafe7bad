//! All ways in turn, round after round, for each number of callers.

use indicatif::ProgressBar;
use serde_json::json;

use super::{TxPlan, arms::TxArm, way::Way};
use crate::bench::{
    error::BenchError,
    figures::{Claim, Column, Columns, Spread, Target, header, row},
    report::Section,
    sample::{self, DATABASE, Ground, Sample},
    server::Server,
};

/// How many measurements there will be.
pub(super) fn steps(plan: &TxPlan) -> u64 {
    let measured = plan.callers.len() * Way::ALL.len();
    u64::from(plan.rounds) * u64::try_from(measured).unwrap_or(u64::MAX)
}

/// Measures, and says how the ways compare.
pub(super) fn run(
    plan: &TxPlan,
    server: &Server,
    progress: &ProgressBar,
) -> Result<Vec<Section>, BenchError> {
    let mut cells: Vec<Cell> = plan.callers.iter().map(|callers| Cell::new(*callers)).collect();
    for round in 0..plan.rounds {
        for cell in &mut cells {
            for at in 0..Way::ALL.len() {
                // Who goes first changes, so that nobody always finds the machine as one other left it.
                let at = (at + round as usize) % Way::ALL.len();
                let (way, callers) = (Way::ALL[at], cell.callers);
                progress.set_message(format!("{callers} callers, {}", way.label()));
                cell.samples[at].push(take(plan, server, way, callers)?);
                progress.inc(1);
            }
        }
    }
    Ok(cells.iter().map(Cell::section).collect())
}

/// Measures one way on a fresh database, with threads of its own.
fn take(plan: &TxPlan, server: &Server, way: Way, callers: usize) -> Result<Sample, BenchError> {
    let runtime = sample::workers()?;
    let measured = runtime.block_on(async {
        let config = server.create(DATABASE).await?;
        let arm = TxArm::connect(&config, way, callers).await?;
        sample::measure(Ground::Postgres(server), plan.duration, callers, arm).await
    });
    runtime.block_on(server.remove(DATABASE))?;
    measured
}

/// Everything measured with one number of callers.
struct Cell {
    callers: usize,
    samples: [Vec<Sample>; Way::ALL.len()],
}

impl Cell {
    fn new(callers: usize) -> Self {
        Self { callers, samples: Default::default() }
    }

    fn of(&self, way: Way) -> &[Sample] {
        let at = Way::ALL.iter().position(|known| *known == way).unwrap_or(0);
        &self.samples[at]
    }

    fn section(&self) -> Section {
        let invalid = Way::ALL.into_iter().flat_map(|way| {
            let reasons = self.of(way).iter().filter_map(|sample| sample.invalid.as_ref());
            reasons.map(move |reason| format!("{}: {reason}", way.label()))
        });
        let data = Way::ALL.into_iter().map(|way| {
            let samples: Vec<_> = self.of(way).iter().map(Sample::json).collect();
            (way.label().to_owned(), json!(samples))
        });
        Section {
            title: match self.callers {
                1 => "One insert in a transaction, 1 caller".to_owned(),
                callers => format!("One insert in a transaction, {callers} callers"),
            },
            header: header(COLUMNS),
            rows: Way::ALL.into_iter().map(|way| row(way.label(), self.of(way), COLUMNS)).collect(),
            claims: self.claims(),
            invalid: invalid.collect(),
            data: json!({ "callers": self.callers, "ways": data.collect::<serde_json::Map<_, _>>() }),
        }
    }

    fn claims(&self) -> Vec<Claim> {
        let bare = |bound| (self.callers == 64).then_some(Target::AtLeast(bound));
        let by_hand = Some(Target::AtLeast(1.0));
        let compared = [
            ("Rust", Way::Once, Way::Bare, bare(0.8)),
            ("SQL functions", Way::Functions, Way::Bare, bare(0.75)),
            ("Rust", Way::Once, Way::TwoCommits, by_hand),
            ("SQL functions", Way::Functions, Way::TwoCommits, by_hand),
        ];
        let claims = compared.into_iter().filter_map(|(name, ours, other, target)| {
            let rounds = self.of(ours).iter().zip(self.of(other));
            // Each round is compared with itself: both ways saw the same machine.
            let measured = Spread::of(rounds.map(|(a, b)| a.per_second / b.per_second))?;
            let what = format!("{name}, requests/s against {}", other.label());
            Some(Claim { what, measured, unit: "x", target })
        });
        claims.collect()
    }
}

const COLUMNS: &Columns<Sample> = &[
    ("requests/s", Column::Median(|sample| Some(sample.per_second))),
    ("range", Column::Range(|sample| Some(sample.per_second))),
    ("p50 ms", Column::Median(|sample| Some(sample.p50_ms))),
    ("p99 ms", Column::Median(|sample| Some(sample.p99_ms))),
    ("server CPU us", Column::Median(|sample| sample.server_cpu_us)),
    ("log bytes", Column::Median(|sample| sample.log_bytes)),
];
