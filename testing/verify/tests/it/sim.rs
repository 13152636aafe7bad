//! The simulator finds what it is there to find.

use std::time::Duration;

use hapax_core::Recovery;
use hapax_verify::{
    checker::HistoryViolation,
    sim::{Flaw, SimFailure, SimPlan, run_plan},
};

/// Seeds that each rule is tried with.
const SEEDS: u64 = 60;

/// A clock that is days ahead for a moment, and an upstream that has an effect each time it is asked.
fn glitches(seed: u64) -> SimPlan {
    SimPlan {
        clock_glitches: 3,
        clock_steps: 0,
        recovery: Recovery::Hold,
        ..SimPlan::from_seed(seed)
    }
}

fn has_second_effect(plan: SimPlan) -> bool {
    let second = |failure: &SimFailure| {
        matches!(failure, SimFailure::History(HistoryViolation::SecondEffect { .. }))
    };
    run_plan(plan).unwrap().failures.iter().any(second)
}

#[test]
fn a_clock_that_is_days_ahead_for_a_moment_repeats_nothing() {
    for seed in 0..SEEDS {
        let report = run_plan(glitches(seed)).unwrap();
        assert!(report.failures.is_empty(), "seed {seed}: {:?}", report.failures);
    }
}

#[test]
fn a_clock_that_is_taken_at_its_word_has_effects_twice() {
    let taken_at_its_word = |seed| SimPlan { clock_stays: Duration::ZERO, ..glitches(seed) };
    let caught = (0..SEEDS).filter(|seed| has_second_effect(taken_at_its_word(*seed))).count();
    assert!(caught > 0, "the checker must see what the rule prevents");
}

/// The first seed whose run, with this flaw, has a failure.
fn first_caught(flaw: Flaw, recovery: Recovery) -> Option<u64> {
    (0..400).find(|seed| {
        let plan =
            SimPlan { flaw: Some(flaw), recovery, clock_steps: 0, ..SimPlan::from_seed(*seed) };
        !run_plan(plan).unwrap().failures.is_empty()
    })
}

#[test]
fn a_no_that_is_believed_too_early_is_noticed() {
    assert!(first_caught(Flaw::EarlyNoBelieved, Recovery::Probe).is_some());
}

#[test]
fn an_intermediary_that_is_believed_is_noticed() {
    assert!(first_caught(Flaw::AnswersForItBelieved, Recovery::Hold).is_some());
}
