//! An episode: some victims die on the same operations, others recover them, all is checked.

use std::thread;

use tokio::runtime::Runtime;

use super::{Drive, home::Home, process::Fate, scene::Scene, strike::Strike, summary::Summary};
use crate::{check::Violation, error::CrashError};

/// How many victims run at the same time, run after run: alone first, then two processes on one
/// store, which also have to recover what the run before left behind.
const RUNS: [usize; 3] = [1, 2, 2];
const STRIKES: usize = RUNS[0] + RUNS[1] + RUNS[2];
/// Operations nobody has asked for before, in every run.
const KEYS_PER_RUN: usize = 28;

/// Runs episode `number` of a drive.
pub(crate) fn run(
    drive: &Drive,
    runtime: &Runtime,
    home: &mut Home,
    number: usize,
) -> Result<Summary, CrashError> {
    let scene = Scene::new(drive, home, &format!("episode {number}"))?;
    let mut summary = Summary::default();
    let mut failures = Vec::new();
    let runs = plan(drive, number);
    let keys = runs.len() * KEYS_PER_RUN;
    let mut victims = number * (STRIKES + 1)..;
    for (run, strikes) in runs.into_iter().enumerate() {
        let keys = (run + 1) * KEYS_PER_RUN;
        let struck = thread::scope(|scope| {
            let threads: Vec<_> = (strikes.into_iter().zip(victims.by_ref()))
                .map(|(strike, victim)| {
                    let scene = &scene;
                    scope.spawn(move || (scene.strike(victim, keys, &strike), strike))
                })
                .collect();
            threads.into_iter().map(join).collect::<Vec<_>>()
        });
        for (fate, strike) in struck {
            match (strike, fate?) {
                (Strike::At(at), Fate::Killed) => {
                    *summary.killed_at.entry(at.place).or_default() += 1;
                }
                (Strike::After(_), Fate::Killed) => summary.killed_at_random += 1,
                (Strike::Asleep { .. }, Fate::Killed) => summary.killed_after_sleep += 1,
                (_, Fate::Ended) => summary.missed += 1,
                (_, Fate::Failed(how)) => failures.push(Violation::Failed { how }),
            }
        }
    }
    let repeat = drive.repeat(&format!("--only {number}"));
    scene.finish(runtime, keys, failures, &mut summary, &repeat)?;
    if !summary.findings.is_empty() {
        home.keep();
    }
    Ok(summary)
}

/// Who dies how, run after run. Where somebody is to die while recovering, somebody else leaves
/// much to recover first.
fn plan(drive: &Drive, number: usize) -> Vec<Vec<Strike>> {
    let places = drive.places();
    let mut strikes: Vec<_> = (number * STRIKES..(number + 1) * STRIKES)
        .map(|number| Strike::draw(drive.seed, number, &places))
        .collect();
    strikes.sort_by_key(|strike| !strike.needs_the_dead());
    let mut runs = Vec::new();
    if strikes.iter().any(Strike::needs_the_dead) {
        runs.push(vec![Strike::in_mid_work()]);
    }
    runs.extend(RUNS.map(|victims| strikes.drain(..victims).collect()));
    runs
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
