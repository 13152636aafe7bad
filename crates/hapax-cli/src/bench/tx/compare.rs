//! All ways in turn, round after round, for each number of callers.

use indicatif::ProgressBar;
use serde_json::json;

use super::{TxPlan, arms::TxArm, way::Way};
use crate::bench::{
    error::BenchError,
    figures::{Claim, Spread, Target, number},
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
            header: HEADER.to_vec(),
            rows: Way::ALL.into_iter().map(|way| row(way, self.of(way))).collect(),
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

const HEADER: [&str; 7] =
    ["way", "requests/s", "range", "p50 ms", "p99 ms", "server CPU us", "log bytes"];

fn row(way: Way, samples: &[Sample]) -> Vec<String> {
    let spread =
        |measure: fn(&Sample) -> Option<f64>| Spread::of(samples.iter().filter_map(measure));
    let median = |measure| spread(measure).map_or_else(String::new, |spread| number(spread.median));
    let range = spread(|sample| Some(sample.per_second));
    vec![
        way.label().to_owned(),
        median(|sample| Some(sample.per_second)),
        range.map_or_else(String::new, |s| format!("{} to {}", number(s.min), number(s.max))),
        median(|sample| Some(sample.p50_ms)),
        median(|sample| Some(sample.p99_ms)),
        median(|sample| sample.server_cpu_us),
        median(|sample| sample.log_bytes),
    ]
}
