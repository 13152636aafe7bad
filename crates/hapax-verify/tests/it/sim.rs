//! The simulator notices what it is there to notice.

use hapax_core::Recovery;
use hapax_verify::sim::{Flaw, Plan, run_plan};

/// The first seed whose run, with this flaw, has a failure.
fn first_caught(flaw: Flaw, recovery: Recovery) -> Option<u64> {
    (0..400).find(|seed| {
        let plan = Plan { flaw: Some(flaw), recovery, clock_steps: 0, ..Plan::from_seed(*seed) };
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
