//! The client and the server on a simulated network, where everything goes wrong that can.
//!
//! One seed, one run: real clients with real journals call a service behind the real layer, over
//! HTTP, in virtual time. Messages are late or lost, links break one way and both, requests arrive
//! twice, clients and the server die and come back, services break off after their effect, wall
//! clocks are set. Then all that stops, and every client learns what became of what it wanted.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "these are tests: what they did not expect ends them"
)]

mod client;
mod judge;
mod network;
mod plan;
mod run;
mod server;
mod world;

use std::{
    env,
    str::FromStr,
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};

use self::{
    judge::Failure,
    plan::Variation,
    run::{Report, run},
    world::Counts,
};

/// How many seeds every change must survive; `cargo xtask sim --client` runs more.
const SEEDS: u64 = 60;
/// How many seeds are run twice to be compared.
const COMPARED: u64 = 6;
/// Within how many seeds a mistake must be found.
const CAUGHT_WITHIN: u64 = 10;

#[test]
fn one_effect_for_each_operation_and_no_client_is_told_anything_else() {
    let (from, seeds) = (asked_for("HAPAX_SIM_FROM", 0), asked_for("HAPAX_SIM_SEEDS", SEEDS));
    let (next, totals) = (AtomicU64::new(from), Mutex::new(Counts::default()));
    let worker = || {
        loop {
            let seed = next.fetch_add(1, Relaxed);
            if seed >= from + seeds {
                return;
            }
            let report = run(seed, Variation::None);
            succeeded(&report);
            if seeds == 1 {
                println!("{:#?}\n{}", report.plan, report.history.join("\n"));
            }
            totals.lock().unwrap().add(report.counts);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(worker);
        }
    });
    let totals = totals.into_inner().unwrap();
    println!("{seeds} seeds: {totals:?}");
    if seeds >= SEEDS {
        totals.cover_everything();
    }
}

#[test]
fn the_same_seed_gives_the_same_history() {
    for seed in 0..COMPARED {
        let (first, second) = (run(seed, Variation::None), run(seed, Variation::None));
        assert_eq!(first.history, second.history, "seed {seed}");
        assert_eq!(first.trace, second.trace, "seed {seed}");
    }
}

#[test]
fn setting_the_wall_clock_of_a_client_changes_nothing() {
    let mut set = 0;
    for seed in 0..COMPARED {
        let (moved, steady) = (run(seed, Variation::None), run(seed, Variation::SteadyClocks));
        assert_eq!(moved.trace, steady.trace, "seed {seed}");
        set += moved.counts.clocks_set;
    }
    assert!(set > 0, "no clock was set");
}

#[test]
fn a_service_without_the_layer_is_caught() {
    is_caught(Variation::NoLayer);
}

#[test]
fn a_key_of_its_own_for_every_attempt_is_caught() {
    is_caught(Variation::KeyPerAttempt);
}

#[test]
fn a_client_that_loses_its_journal_is_caught() {
    is_caught(Variation::JournalLost);
}

/// Something is done wrongly, and an operation has two effects.
fn is_caught(variation: Variation) {
    let is_twice = |failure: &Failure| matches!(failure, Failure::Twice { .. });
    let caught = (0..CAUGHT_WITHIN).any(|seed| run(seed, variation).failures.iter().any(is_twice));
    assert!(caught, "{variation:?} went unnoticed");
}

fn succeeded(report: &Report) {
    assert!(
        report.failures.is_empty(),
        "{:#?}\n{}\n{:#?}\nrepeat: cargo xtask sim --client --seed {}",
        report.plan,
        report.history.join("\n"),
        report.failures,
        report.plan.seed,
    );
}

fn asked_for<T: FromStr>(variable: &str, otherwise: T) -> T {
    env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}
