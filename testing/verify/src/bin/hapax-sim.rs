//! Runs seeds of the simulator on every core, and says how to repeat the first that fails.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "this program talks to a person")]

use std::{
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};

use hapax_verify::sim::{self, SimReport};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments.as_slice() {
        ["--seed", seed] => seed.parse().ok().map(one),
        ["--seeds", seeds] => seeds.parse().ok().map(|seeds| many(0, seeds)),
        ["--seeds", seeds, "--from", from] => {
            seeds.parse().ok().zip(from.parse().ok()).map(|(seeds, from)| many(from, seeds))
        }
        _ => None,
    };
    done.unwrap_or_else(|| {
        eprintln!("usage: hapax-sim --seeds N [--from SEED] | --seed SEED");
        ExitCode::from(2)
    })
}

/// Runs one seed and tells everything about it.
fn one(seed: u64) -> ExitCode {
    match sim::run(seed) {
        Ok(report) => {
            println!("{report:#?}");
            ExitCode::from(u8::from(!report.failures.is_empty()))
        }
        Err(error) => cannot_run(&error),
    }
}

/// Seeds run this often a second time: the same seed must give the same history.
const REPEAT_EVERY: u64 = 100;

#[derive(Default)]
struct SimTotals {
    seeds: AtomicU64,
    calls: AtomicU64,
    effects: AtomicU64,
    faults: AtomicU64,
    failed: Mutex<Vec<(u64, String)>>,
}

/// Runs seeds on every core and tells the totals.
fn many(from: u64, seeds: u64) -> ExitCode {
    let (next, totals) = (AtomicU64::new(from), SimTotals::default());
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let outcome: std::io::Result<()> = thread::scope(|scope| {
        let worker = || {
            loop {
                let seed = next.fetch_add(1, Relaxed);
                if seed >= from.saturating_add(seeds) {
                    return Ok(());
                }
                let report = sim::run(seed)?;
                if seed % REPEAT_EVERY == 0 && sim::run(seed)?.trace != report.trace {
                    totals.fail(seed, "the same seed gave another history".to_owned());
                }
                totals.add(&report, seeds);
            }
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err(std::io::Error::other("a run panicked")))
        })
    });
    match outcome {
        Ok(()) => totals.tell(),
        Err(error) => cannot_run(&error),
    }
}

impl SimTotals {
    fn add(&self, report: &SimReport, of: u64) {
        self.calls.fetch_add(u64::try_from(report.calls).unwrap_or(u64::MAX), Relaxed);
        self.effects.fetch_add(u64::try_from(report.effects).unwrap_or(u64::MAX), Relaxed);
        self.faults.fetch_add(report.faults, Relaxed);
        for failure in &report.failures {
            self.fail(report.plan.seed, failure.to_string());
        }
        let done = self.seeds.fetch_add(1, Relaxed) + 1;
        if done.is_multiple_of((of / 10).max(1)) {
            println!("{done} of {of} seeds");
        }
    }

    fn fail(&self, seed: u64, what: String) {
        println!("seed {seed}: {what}");
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).push((seed, what));
    }

    fn tell(&self) -> ExitCode {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        println!(
            "{} seeds: {} calls, {} effects, {} faults injected, {} violations",
            self.seeds.load(Relaxed),
            self.calls.load(Relaxed),
            self.effects.load(Relaxed),
            self.faults.load(Relaxed),
            failed.len(),
        );
        if let Some((seed, what)) = failed.iter().min() {
            println!("first: {what}\nrepeat: cargo xtask sim --seed {seed}");
        }
        ExitCode::from(u8::from(!failed.is_empty()))
    }
}

fn cannot_run(error: &std::io::Error) -> ExitCode {
    eprintln!("the simulator cannot run: {error}");
    ExitCode::from(2)
}
