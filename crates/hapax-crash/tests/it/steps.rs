use std::{io::Write, path::PathBuf};

use hapax_crash::steps::{Drive, Summary};

use crate::crashes::postgres_url;

fn drive(postgres_url: Option<String>) -> Drive {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_hapax-crash"));
    Drive { program, postgres_url, kills: 60, seed: 1, never_probe: false }
}

fn check(drive: &Drive) -> Summary {
    let summary = drive.run().unwrap();
    let _ = writeln!(std::io::stdout(), "{summary}");
    assert!(summary.findings.is_empty(), "{summary}");
    assert!(summary.kills() >= drive.kills, "too few died:\n{summary}");
    for place in drive.places() {
        assert!(summary.killed_at.contains_key(place), "nobody died at {place}:\n{summary}");
    }
    summary
}

#[test]
fn sixty_deaths_between_the_steps_on_sqlite_leave_each_effect_once() {
    check(&drive(None));
}

#[test]
fn sixty_deaths_between_the_steps_on_postgres_leave_each_effect_once() {
    check(&drive(Some(postgres_url().unwrap())));
}

#[test]
fn a_workflow_that_repeats_what_it_could_ask_for_is_noticed() {
    let summary = Drive { kills: 500, never_probe: true, ..drive(None) }.run().unwrap();
    // Two of them, or as many as processes died right after it.
    let repeated =
        |finding: &String| finding.ends_with(" events") && !finding.ends_with(" 0 events");
    assert!(summary.findings.iter().any(repeated), "{summary}");
}
