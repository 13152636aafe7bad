//! All ways in turn, round after round, for each number of callers.

use super::{TxPlan, arms::TxArm, way::Way};
use crate::bench::{
    disk::Disk,
    error::BenchError,
    figures::{Claim, Target},
    run::Run,
    sample::{self, COLUMNS, Measure, Sample},
    server::Server,
    turns::{Named as _, Turns},
};

/// How many measurements there will be.
pub(super) fn steps(plan: &TxPlan) -> u64 {
    let measured = plan.callers.len() * Way::ALL.len();
    u64::from(plan.rounds) * u64::try_from(measured).unwrap_or(u64::MAX)
}

/// Measures, and says how the ways compare.
pub(super) fn run(plan: &TxPlan, server: &Server, run: &mut Run) -> Result<(), BenchError> {
    for callers in &plan.callers {
        let turns = Turns::take(plan.rounds, &Way::ALL, |way| {
            run.progress.begin(format!("{callers} callers, {}", way.label()))?;
            let sample = take(plan, server, way, *callers);
            run.progress.inc(1);
            sample
        })?;
        let title = match callers {
            1 => "One insert in a transaction, 1 caller".to_owned(),
            callers => format!("One insert in a transaction, {callers} callers"),
        };
        run.add(turns.section(title, COLUMNS, claims(&turns, *callers)));
    }
    Ok(())
}

/// Measures one way on a fresh database.
fn take(plan: &TxPlan, server: &Server, way: Way, callers: usize) -> Result<Sample, BenchError> {
    let measure = Measure { duration: plan.duration, callers, at_half: true };
    sample::on_fresh_database(server, async |config| {
        let arm = TxArm::connect(config, way, callers).await?;
        measure.of(Some(server), Some(Disk::Tables(config)), arm).await
    })
}

fn claims(turns: &Turns<Way, Sample>, callers: usize) -> impl Iterator<Item = Option<Claim>> {
    let bare = |bound| (callers == 64).then_some(Target::AtLeast(bound));
    let by_hand = Some(Target::AtLeast(1.0));
    let compared = [
        ("Rust", Way::Once, Way::Bare, bare(0.8)),
        ("SQL functions", Way::Functions, Way::Bare, bare(0.75)),
        ("Rust", Way::Once, Way::TwoCommits, by_hand),
        ("SQL functions", Way::Functions, Way::TwoCommits, by_hand),
    ];
    compared.into_iter().map(|(name, ours, other, target)| {
        let measured = turns.ratio(ours, other, |sample| Some(sample.per_second))?;
        let what = format!("{name}, requests/s against {}", other.label());
        Some(Claim { what, measured, unit: "x", target })
    })
}
