use std::path::PathBuf;

use hapax_power::{
    disk::Syncs,
    hunt::{PowerHunt, PowerReport},
    plan::Workload,
};
use hapax_sqlite::Durability;

/// A hunt as short as it may be and still come by every kind of moment.
pub(crate) fn hunt(workload: Workload, images: usize) -> PowerHunt {
    PowerHunt {
        program: PathBuf::from(env!("CARGO_BIN_EXE_hapax-power")),
        workload,
        seed: 1,
        images,
        again: 0,
        durability: Durability::Full,
        promise: Durability::Full,
        syncs: Syncs::Honest,
    }
}

#[expect(clippy::print_stdout, reason = "how much was judged is worth publishing")]
fn check(hunt: &PowerHunt, under_way: &[&str]) -> PowerReport {
    let report = hunt.run().unwrap();
    assert!(report.findings.is_empty(), "{report}");
    for name in under_way {
        assert!(report.under_way.contains_key(name), "no {name} was under way: {report}");
    }
    println!("{}: {report}", hunt.workload);
    report
}

#[test]
fn power_lost_at_any_call_of_the_first_opening_leaves_one_salt_or_none() {
    let report = check(&hunt(Workload::Opening, usize::MAX), &[]);
    assert_eq!(report.moments, report.calls, "the power is lost at every call: {report}");
    assert!(report.syncs > 0, "{report}");
}

#[test]
fn power_lost_at_any_moment_loses_nothing_acknowledged_and_damages_nothing() {
    let under_way =
        ["checkpoint", "claim", "note", "once", "purge", "renew", "settle", "step", "withdraw"];
    let hunt = PowerHunt { again: 4, ..hunt(Workload::Mixed, 1000) };
    let report = check(&hunt, &under_way);
    assert!(report.moments_again > 0, "the power was not lost again: {report}");
}

#[test]
fn power_lost_while_the_log_is_copied_loses_nothing_acknowledged() {
    check(&hunt(Workload::Checkpoints, 80), &["claim", "purge", "settle"]);
}

#[test]
fn power_lost_with_many_keys_loses_nothing_acknowledged() {
    check(&hunt(Workload::ManyKeys, 240), &["claim", "settle"]);
}

#[test]
fn power_lost_by_two_processes_on_one_file_loses_nothing_acknowledged() {
    check(&hunt(Workload::Processes, 300), &["claim", "settle"]);
}

#[test]
fn normal_durability_loses_the_last_commits_whole_and_damages_nothing() {
    let normal = Durability::Normal;
    let hunt = PowerHunt { durability: normal, promise: normal, ..hunt(Workload::Mixed, 300) };
    check(&hunt, &["claim", "once", "settle"]);
}
