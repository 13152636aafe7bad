use hapax_crash::{
    check::Violation,
    drive::{Backend, Drive},
    place,
    victim::Broken,
};

use crate::crashes::drive;

/// Drives victims that make a mistake to death where it matters; the check must see it.
fn check(broken: Broken, noticed: impl Fn(&Violation) -> bool) {
    let drive = Drive {
        kills: 4,
        at: vec![place::EFFECT.to_owned()],
        broken: Some(broken),
        ..drive(Backend::Sqlite)
    };
    let summary = drive.run(&|_| {}).unwrap();
    let found = summary.findings.iter().any(|finding| noticed(&finding.violation));
    assert!(found, "{broken:?} was not noticed:\n{summary}");
    for finding in &summary.findings {
        assert!(finding.repeat.contains("--seed 1"), "{}", finding.repeat);
        let home = finding.dir.parent().unwrap();
        if home.exists() {
            std::fs::remove_dir_all(home).unwrap();
        }
    }
}

#[test]
fn telling_before_storing_is_noticed() {
    check(Broken::AckBeforeSettle, |violation| {
        matches!(violation, Violation::ToldButNotKept { .. })
    });
}

#[test]
fn running_again_what_is_in_doubt_is_noticed() {
    check(Broken::RerunHeld, |violation| matches!(violation, Violation::Effects { .. }));
}

#[test]
fn running_again_without_asking_is_noticed() {
    check(Broken::ProbeBlind, |violation| matches!(violation, Violation::Effects { .. }));
}
