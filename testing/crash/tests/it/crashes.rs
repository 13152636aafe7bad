use std::path::{Path, PathBuf};

use hapax_crash::records::{RecordBackend, RecordHunt, RecordReport};
use hapax_services::roster::Roster;

/// A short hunt: the same places in the same order every time, at moments that differ.
pub(crate) fn hunt(backend: RecordBackend) -> RecordHunt {
    RecordHunt {
        program: PathBuf::from(env!("CARGO_BIN_EXE_hapax-crash")),
        backend,
        kills: 100,
        server_stops: 0,
        seed: 1,
        workers: 2,
        at: Vec::new(),
        only: None,
        broken: None,
    }
}

fn check(hunt: &RecordHunt) -> RecordReport {
    let report = hunt.run(&|_| {}).unwrap();
    assert!(report.findings.is_empty(), "{report}");
    assert!(report.deaths.kills() >= hunt.kills, "too few died:\n{report}");
    assert!(report.deaths.at_random > 0, "nobody died at random:\n{report}");
    assert!(report.deaths.after_sleep > 0, "nobody slept through a lease:\n{report}");
    for place in hunt.backend.places() {
        assert!(report.deaths.at.contains_key(place), "nobody died at {place}:\n{report}");
    }
    assert!(report.in_doubt > 0, "no crash came between an effect and its record:\n{report}");
    report
}

pub(crate) fn postgres_url() -> Option<String> {
    let services = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.services");
    std::env::var("HAPAX_POSTGRES_URL").ok().or_else(|| Roster::at(services).url())
}

#[test]
fn a_hundred_deaths_on_sqlite_leave_one_effect_per_key() {
    check(&hunt(RecordBackend::Sqlite));
}

#[test]
fn a_hundred_deaths_on_postgres_leave_one_effect_per_key() {
    check(&hunt(RecordBackend::Postgres { url: postgres_url() }));
}

#[test]
fn a_postgres_that_stops_at_once_in_mid_load_leaves_one_effect_per_key() {
    let outages =
        RecordHunt { kills: 0, server_stops: 2, ..hunt(RecordBackend::Postgres { url: None }) };
    let report = outages.run(&|_| {}).unwrap();
    assert!(report.findings.is_empty(), "{report}");
    assert_eq!(report.servers_stopped, 2);
    assert_eq!(report.deaths.at_random, 1, "one victim dies while the server is down");
}
