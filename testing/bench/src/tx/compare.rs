//! All ways in turn, round after round, for each number of callers.

use super::{TxPlan, arms::TxArm, way::TransactionWay};
use crate::{
    disk::Disk,
    error::BenchError,
    figures::{BoundedFigure, FigureTarget},
    run::BenchRun,
    sample::{self, COLUMNS, Measure, StoreSample},
    server::BenchServer,
    turns::{NamedWay as _, WayTurns},
};

/// How many measurements there will be.
pub(super) fn steps(plan: &TxPlan) -> u64 {
    let measured = plan.callers.len() * TransactionWay::ALL.len();
    u64::from(plan.rounds) * u64::try_from(measured).unwrap_or(u64::MAX)
}

/// Measures, and says how the ways compare.
pub(super) fn run(
    plan: &TxPlan,
    server: &BenchServer,
    run: &mut BenchRun,
) -> Result<(), BenchError> {
    for callers in &plan.callers {
        let turns = WayTurns::take(plan.rounds, &TransactionWay::ALL, |way| {
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
fn take(
    plan: &TxPlan,
    server: &BenchServer,
    way: TransactionWay,
    callers: usize,
) -> Result<StoreSample, BenchError> {
    let measure = Measure { duration: plan.duration, callers, at_half: true };
    sample::on_fresh_database(server, async |config| {
        let arm = TxArm::connect(config, way, callers).await?;
        measure.of(Some(server), Some(Disk::Tables(config)), arm).await
    })
}

fn claims(
    turns: &WayTurns<TransactionWay, StoreSample>,
    callers: usize,
) -> impl Iterator<Item = Option<BoundedFigure>> {
    use TransactionWay::{Bare, Functions, LookAtBegin, LookAtEnd, Record, Statement, TwoCommits};

    let bare = |bound| (callers == 64).then_some(FigureTarget::AtLeast(bound));
    let asked = [
        (LookAtBegin, bare(0.65)),
        (LookAtEnd, bare(0.78)),
        (Functions, bare(0.50)),
        (Record, bare(0.62)),
        (Statement, bare(0.68)),
    ];
    let by_hand = Some(FigureTarget::AtLeast(1.1));
    let of_bare = asked.map(|(ours, target)| (ours, Bare, target));
    let of_two_commits = asked.map(|(ours, _)| (ours, TwoCommits, by_hand));
    of_bare.into_iter().chain(of_two_commits).map(|(ours, other, target)| {
        let measured = turns.ratio(ours, other, |sample| Some(sample.per_second))?;
        let what = format!("{}, requests/s against {}", ours.label(), other.label());
        Some(BoundedFigure { what, measured, unit: "x", target })
    })
}
