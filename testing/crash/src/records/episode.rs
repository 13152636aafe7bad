//! An episode: some victims die on the same operations, others recover them, all is checked.

use super::{
    check::RecordViolation,
    hunt::RecordHunt,
    report::RecordReport,
    scene::Scene,
    strike::{draw, in_mid_work, needs_the_dead},
};
use crate::{
    error::CrashError,
    hunt::{Home, Strike, side_by_side},
};

/// How many victims run at the same time, run after run: alone first, then two processes on one
/// store, which also have to recover what the run before left behind.
const RUNS: [usize; 3] = [1, 2, 2];
const STRIKES: usize = RUNS[0] + RUNS[1] + RUNS[2];
/// Operations nobody has asked for before, in every run.
const KEYS_PER_RUN: usize = 28;

/// Runs episode `number` of a hunt.
pub(super) fn run(
    hunt: &RecordHunt,
    home: &mut Home,
    number: usize,
) -> Result<RecordReport, CrashError> {
    let scene = Scene::new(hunt, home, &format!("episode {number}"))?;
    let mut report = RecordReport::default();
    let mut failures = Vec::new();
    let runs = plan(hunt, number);
    let keys = runs.len() * KEYS_PER_RUN;
    let mut victims = number * (STRIKES + 1)..;
    for (run, strikes) in runs.into_iter().enumerate() {
        let keys = (run + 1) * KEYS_PER_RUN;
        let scene = &scene;
        let jobs = strikes
            .into_iter()
            .zip(victims.by_ref())
            .map(|(strike, victim)| move || Ok((scene.strike(victim, keys, &strike)?, strike)));
        for (end, strike) in side_by_side(jobs)? {
            let failed = report.deaths.count(end, &strike);
            failures.extend(failed.map(|how| RecordViolation::Failed { how }));
        }
    }
    let repeat = hunt.repeat(&format!("--only {number}"));
    scene.finish(home, keys, failures, &mut report, &repeat)?;
    if !report.findings.is_empty() {
        home.keep();
    }
    Ok(report)
}

/// Who dies how, run after run. Where somebody is to die while recovering, somebody else leaves
/// much to recover first.
fn plan(hunt: &RecordHunt, number: usize) -> Vec<Vec<Strike>> {
    let places = hunt.places();
    let mut strikes: Vec<_> = (number * STRIKES..(number + 1) * STRIKES)
        .map(|number| draw(hunt.seed, number, &places))
        .collect();
    strikes.sort_by_key(|strike| !needs_the_dead(strike));
    let mut runs = Vec::new();
    if strikes.iter().any(needs_the_dead) {
        runs.push(vec![in_mid_work()]);
    }
    runs.extend(RUNS.map(|victims| strikes.drain(..victims).collect()));
    runs
}
