//! An episode: some victims die on the same operations, others recover them, all is checked.

use std::{fs, path::Path, path::PathBuf, thread};

use hapax_core::Scope;
use tokio::runtime::Runtime;

use super::{
    Drive,
    facts::gather,
    home::Home,
    process::{Fate, Victim},
    strike::Strike,
    summary::{Finding, Summary},
};
use crate::{
    check::{Violation, check},
    error::CrashError,
    victim::Orders,
};

/// How many victims run at the same time, run after run: alone first, then two processes on one
/// store, which also have to recover what the run before left behind.
const RUNS: [usize; 3] = [1, 2, 2];
const STRIKES: usize = RUNS[0] + RUNS[1] + RUNS[2];
/// Operations nobody has asked for before, in every run.
const KEYS_PER_RUN: usize = 21;
/// How long a victim may take to come to the place it is to die at.
const STRIKE_LIMIT_MS: u64 = 1500;
/// How long recovery may take before operations count as stuck.
const RECOVERY_LIMIT_MS: u64 = 20_000;

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
    let mut strikes = number * STRIKES..(number + 1) * STRIKES;
    let places = drive.places();
    for (run, victims) in RUNS.into_iter().enumerate() {
        let keys = (run + 1) * KEYS_PER_RUN;
        let struck = thread::scope(|scope| {
            let threads: Vec<_> = strikes
                .by_ref()
                .take(victims)
                .map(|number| {
                    let strike = Strike::draw(drive.seed, number, &places);
                    let scene = &scene;
                    scope.spawn(move || (strike.clone(), scene.strike(number, keys, &strike)))
                })
                .collect();
            threads.into_iter().map(join).collect::<Vec<_>>()
        });
        for (strike, fate) in struck {
            match (strike, fate?) {
                (Strike::At(at), Fate::Killed) => {
                    *summary.killed_at.entry(at.place).or_default() += 1;
                }
                (Strike::After(_), Fate::Killed) => summary.killed_at_random += 1,
                (_, Fate::Ended) => summary.missed += 1,
                (_, Fate::Failed(how)) => failures.push(Violation::Failed { how }),
            }
        }
    }
    let repeat = drive.repeat(&format!("--only {number}"));
    scene.finish(runtime, RUNS.len() * KEYS_PER_RUN, failures, &mut summary, &repeat)?;
    if !summary.findings.is_empty() {
        home.keep();
    }
    Ok(summary)
}

/// Where an episode takes place.
#[derive(Debug)]
pub(crate) struct Scene {
    program: PathBuf,
    dir: PathBuf,
    orders: Orders,
}

impl Scene {
    pub(crate) fn new(drive: &Drive, home: &Home, name: &str) -> Result<Self, CrashError> {
        let dir = home.dir().join(name.replace(' ', "-"));
        fs::create_dir_all(&dir).map_err(CrashError::io(format!("make {}", dir.display())))?;
        let orders = Orders {
            store: home.address().clone(),
            dir: dir.clone(),
            scope: format!("{} {name}", drive.seed),
            seed: drive.seed,
            keys: 0,
            callers: 6,
            die_at: None,
            linger: false,
            finish: false,
            limit_ms: RECOVERY_LIMIT_MS,
            broken: drive.broken,
        };
        Ok(Self { program: drive.program.clone(), dir, orders })
    }

    /// Starts a victim that asks for `keys` operations.
    pub(crate) fn start(
        &self,
        name: &str,
        keys: usize,
        change: impl FnOnce(&mut Orders),
    ) -> Result<Victim, CrashError> {
        let mut orders = Orders { keys, ..self.orders.clone() };
        change(&mut orders);
        Victim::start(&self.program, &orders, self.dir.join(format!("{name}.log")))
    }

    fn strike(&self, number: usize, keys: usize, strike: &Strike) -> Result<Fate, CrashError> {
        let mut victim = self.start(&format!("strike-{number}"), keys, |orders| {
            orders.seed = orders.seed.wrapping_add(number as u64);
            orders.linger = true;
            orders.finish = number % 2 == 0;
            orders.limit_ms = STRIKE_LIMIT_MS;
            orders.die_at = match strike {
                Strike::At(at) => Some(at.clone()),
                Strike::After(_) => None,
            };
        })?;
        if let Strike::After(delay) = strike {
            victim.kill_after(*delay)?;
        }
        victim.wait()
    }

    /// Lets two processes recover everything, and checks what is left behind.
    pub(crate) fn finish(
        &self,
        runtime: &Runtime,
        keys: usize,
        mut violations: Vec<Violation>,
        summary: &mut Summary,
        repeat: &str,
    ) -> Result<(), CrashError> {
        let healers = ["recovery-a", "recovery-b"]
            .map(|name| self.start(name, keys, |orders| orders.finish = true));
        for healer in healers {
            match healer?.wait()? {
                Fate::Ended => {}
                Fate::Killed => violations.push(Violation::Failed { how: "killed".to_owned() }),
                Fate::Failed(how) => violations.push(Violation::Failed { how }),
            }
        }
        let scope = Scope::parse(&self.orders.scope);
        let scope =
            scope.map_err(|error| CrashError::io("name a scope")(std::io::Error::other(error)))?;
        let facts = gather(&self.orders.store, &self.dir, &scope, keys);
        let facts = runtime.block_on(facts)?;
        violations.extend(check(&facts));
        summary.count(&facts);
        summary.findings.extend(violations.into_iter().map(|violation| Finding {
            violation,
            repeat: repeat.to_owned(),
            dir: self.dir.clone(),
        }));
        Ok(())
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

fn join<T>(thread: thread::ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
