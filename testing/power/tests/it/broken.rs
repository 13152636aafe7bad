//! The judge can fail.

use hapax_power::{disk::Syncs, hunt::PowerHunt, judge::PowerViolation, plan::Workload};
use hapax_sqlite::Durability;

use crate::loss::hunt;

/// Something is wrong with what is left; the judge must see it.
fn check(hunt: &PowerHunt, noticed: impl Fn(&PowerViolation) -> bool) {
    let report = hunt.run().unwrap();
    let found = report.findings.iter().any(|finding| noticed(&finding.violation));
    assert!(found, "it was not noticed: {report}");
    for finding in &report.findings {
        let home = finding.dir.parent().unwrap();
        if home.exists() {
            std::fs::remove_dir_all(home).unwrap();
        }
    }
}

#[test]
fn a_disk_that_ignores_syncs_from_the_start_is_noticed() {
    let syncs = Syncs::IgnoredAfter(0);
    check(&PowerHunt { syncs, ..hunt(Workload::Opening, usize::MAX) }, |violation| {
        matches!(violation, PowerViolation::Unopened(_) | PowerViolation::Salt { .. })
    });
}

#[test]
fn a_disk_that_ignores_syncs_of_commits_is_noticed() {
    let syncs = Syncs::IgnoredOnceOpened;
    check(&PowerHunt { syncs, ..hunt(Workload::Mixed, 300) }, |violation| {
        matches!(violation, PowerViolation::Illegal { .. })
    });
}

#[test]
fn commits_that_are_answered_before_they_are_synced_are_noticed() {
    let durability = Durability::Normal;
    check(&PowerHunt { durability, ..hunt(Workload::Mixed, 300) }, |violation| {
        matches!(violation, PowerViolation::Illegal { .. } | PowerViolation::Salt { .. })
    });
}
