use hapax_crash::{
    place,
    records::{RecordBackend, RecordHunt, RecordMistake, check::RecordViolation},
};

use crate::crashes::hunt;

/// Hunts victims that make a mistake where it matters; the check must see it.
fn check(broken: RecordMistake, noticed: impl Fn(&RecordViolation) -> bool) {
    let hunt = RecordHunt {
        kills: 4,
        at: vec![place::EFFECT.to_owned()],
        broken: Some(broken),
        ..hunt(RecordBackend::Sqlite)
    };
    let report = hunt.run(&|_| {}).unwrap();
    let found = report.findings.iter().any(|finding| noticed(&finding.violation));
    assert!(found, "{broken:?} was not noticed:\n{report}");
    for finding in &report.findings {
        assert!(finding.repeat.contains("--seed 1"), "{}", finding.repeat);
        let home = finding.dir.parent().unwrap();
        if home.exists() {
            std::fs::remove_dir_all(home).unwrap();
        }
    }
}

#[test]
fn telling_before_storing_is_noticed() {
    check(RecordMistake::AckBeforeSettle, |violation| {
        matches!(violation, RecordViolation::ToldButNotKept { .. })
    });
}

#[test]
fn running_again_what_is_in_doubt_is_noticed() {
    check(RecordMistake::RerunHeld, |violation| {
        matches!(violation, RecordViolation::Effects { .. })
    });
}

#[test]
fn running_again_without_asking_is_noticed() {
    check(RecordMistake::ProbeBlind, |violation| {
        matches!(violation, RecordViolation::Effects { .. })
    });
}
