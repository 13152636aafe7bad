use std::{io::Write, path::PathBuf};

use hapax_crash::steps::{StepsHunt, StepsReport};

use crate::crashes::postgres_url;

fn hunt(postgres_url: Option<String>) -> StepsHunt {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_hapax-crash"));
    StepsHunt { program, postgres_url, kills: 60, seed: 1, never_probe: false }
}

fn check(hunt: &StepsHunt) -> StepsReport {
    let report = hunt.run().unwrap();
    let _ = writeln!(std::io::stdout(), "{report}");
    assert!(report.findings.is_empty(), "{report}");
    assert!(report.deaths.kills() >= hunt.kills, "too few died:\n{report}");
    for place in hunt.places() {
        assert!(report.deaths.at.contains_key(place), "nobody died at {place}:\n{report}");
    }
    report
}

#[test]
fn sixty_deaths_between_the_steps_on_sqlite_leave_each_effect_once() {
    check(&hunt(None));
}

#[test]
fn sixty_deaths_between_the_steps_on_postgres_leave_each_effect_once() {
    check(&hunt(Some(postgres_url().unwrap())));
}

#[test]
fn a_workflow_that_repeats_what_it_could_ask_for_is_noticed() {
    let report = StepsHunt { kills: 500, never_probe: true, ..hunt(None) }.run().unwrap();
    // Two of them, or as many as processes died right after it.
    let repeated =
        |finding: &String| finding.ends_with(" events") && !finding.ends_with(" 0 events");
    assert!(report.findings.iter().any(repeated), "{report}");
}
