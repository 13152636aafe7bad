use std::path::PathBuf;

use hapax_power::{disk::Syncs, journal::JournalHunt};

fn hunt(syncs: Syncs) -> JournalHunt {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_hapax-power"));
    JournalHunt { program, seed: 1, syncs, encrypted: false }
}

#[test]
fn power_lost_at_any_call_of_a_journal_forgets_no_operation_that_may_have_been_sent() {
    let report = hunt(Syncs::Honest).run().unwrap();
    assert!(report.findings.is_empty(), "{report}");
    assert_eq!(report.moments, report.calls, "the power is lost at every call: {report}");
}

#[test]
fn power_lost_at_any_call_of_a_journal_that_is_encrypted_halfway_forgets_nothing_either() {
    let report = JournalHunt { encrypted: true, ..hunt(Syncs::Honest) }.run().unwrap();
    assert!(report.findings.is_empty(), "{report}");
    assert_eq!(report.moments, report.calls, "the power is lost at every call: {report}");
}

#[test]
fn a_disk_that_ignores_syncs_of_a_journal_is_noticed() {
    let report = hunt(Syncs::IgnoredAfter(20)).run().unwrap();
    assert_eq!(report.findings.len(), 1, "it was not noticed: {report}");
    std::fs::remove_dir_all(report.findings[0].dir.parent().unwrap()).unwrap();
}
