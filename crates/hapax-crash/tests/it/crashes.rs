use std::path::{Path, PathBuf};

use hapax_crash::drive::{Backend, Drive, Summary};
use hapax_services::roster::Roster;

/// A short drive: the same places in the same order every time, at moments that differ.
pub(crate) fn drive(backend: Backend) -> Drive {
    Drive {
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

fn check(drive: &Drive) -> Summary {
    let summary = drive.run(&|_| {}).unwrap();
    assert!(summary.findings.is_empty(), "{summary}");
    assert!(summary.kills() >= drive.kills, "too few died:\n{summary}");
    assert!(summary.killed_at_random > 0, "nobody died at random:\n{summary}");
    assert!(summary.killed_after_sleep > 0, "nobody slept through a lease:\n{summary}");
    for place in drive.backend.places() {
        assert!(summary.killed_at.contains_key(place), "nobody died at {place}:\n{summary}");
    }
    assert!(summary.in_doubt > 0, "no crash came between an effect and its record:\n{summary}");
    summary
}

pub(crate) fn postgres_url() -> Option<String> {
    let services = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.services");
    std::env::var("HAPAX_POSTGRES_URL").ok().or_else(|| Roster::at(services).url())
}

#[test]
fn a_hundred_deaths_on_sqlite_leave_one_effect_per_key() {
    check(&drive(Backend::Sqlite));
}

#[test]
fn a_hundred_deaths_on_postgres_leave_one_effect_per_key() {
    check(&drive(Backend::Postgres { url: postgres_url() }));
}

#[test]
fn a_postgres_that_stops_at_once_in_mid_load_leaves_one_effect_per_key() {
    let outages = Drive { kills: 0, server_stops: 2, ..drive(Backend::Postgres { url: None }) };
    let summary = outages.run(&|_| {}).unwrap();
    assert!(summary.findings.is_empty(), "{summary}");
    assert_eq!(summary.servers_stopped, 2);
    assert_eq!(summary.killed_at_random, 1, "one victim dies while the server is down");
}
