//! The species that are found by what overlaps and what is cut.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use hapax_examine::{
    DefectClass, Examination, ExaminationBounds, ExaminationEvent, ProbeRecord, ProbeVerdict,
};
use hapax_zoo::Species;

use crate::zoo;

/// The probes that race and cut.
const PROBES: &[&str] =
    &["V02", "V03", "V04", "V11", "V12", "V13", "V14", "V15", "V16", "V29", "V31", "V32"];

/// How often it is tried where too little came about.
const ATTEMPTS_MAX: usize = 4;

/// A species, how long its handler is made to take once it is known, the probe meant for it, and what that finds.
type Planted = (&'static str, Option<u32>, &'static str, DefectClass);

const PLANTED: &[Planted] = &[
    ("check-then-act", None, "V02", DefectClass::Safety),
    ("check-then-act", None, "V03", DefectClass::Safety),
    ("check-then-act", None, "V16", DefectClass::Safety),
    ("conflict-taken-for-failure", None, "V02", DefectClass::Safety),
    ("unique-violation-500", None, "V02", DefectClass::ContractHigh),
    ("unique-violation-500", None, "V03", DefectClass::ContractHigh),
    ("unique-violation-500", None, "V16", DefectClass::ContractHigh),
    ("empty-200-in-flight", None, "V16", DefectClass::ContractHigh),
    ("empty-200-in-flight", None, "V02", DefectClass::ContractHigh),
    ("http2-bypasses-check", None, "V03", DefectClass::Safety),
    ("claim-shared-by-connection", None, "V03", DefectClass::Safety),
    ("keys-per-instance", None, "V04", DefectClass::Safety),
    ("stuck-after-disconnect", None, "V11", DefectClass::Liveness),
    ("stuck-after-disconnect", None, "V15", DefectClass::Liveness),
    ("rolled-back-after-disconnect", None, "V11", DefectClass::Safety),
    ("rolled-back-after-disconnect", None, "V15", DefectClass::Safety),
    ("freed-when-answer-untaken", None, "V12", DefectClass::Safety),
    ("cut-body-executed", None, "V13", DefectClass::Safety),
    ("conflict-without-retry-after", None, "V14", DefectClass::Hygiene),
    ("conflict-without-retry-after", None, "V16", DefectClass::Hygiene),
    ("expiry-deletes-running-keys", None, "V14", DefectClass::Safety),
    ("expiry-deletes-running-keys", None, "V16", DefectClass::Safety),
    ("lease-without-fence", None, "V14", DefectClass::Safety),
    ("lease-without-fence", None, "V16", DefectClass::Safety),
    ("proxy-resends-when-slow", Some(200), "V14", DefectClass::Safety),
    ("proxy-resends-when-slow", Some(200), "V16", DefectClass::Safety),
    ("duplicate-row-visible", None, "V29", DefectClass::Safety),
    ("pipelines-at-once", None, "V31", DefectClass::Safety),
    ("forwarded-for-in-key", None, "V32", DefectClass::Safety),
];

/// Few trials, and a stuck key is waited for no longer than this.
fn short(examination: Examination, recovery: Duration) -> Examination {
    let bounds = ExaminationBounds {
        racers: vec![2, 8],
        race_trials: 3,
        recovery,
        ..ExaminationBounds::default()
    };
    Examination { bounds, ..examination }
}

/// What these probes find in a species whose handler is made to take so many milliseconds when they begin.
async fn probed(name: &str, slow: Option<u32>, probes: &[&str]) -> Vec<ProbeRecord> {
    let running = Species::named(name).unwrap().start().await.unwrap();
    let is_broken = Species::named(name).unwrap().is_broken();
    let recovery = Duration::from_secs(if is_broken { 1 } else { 10 });
    let examination = Arc::new(short(zoo::examination(&running, probes), recovery));
    let cancelled = Arc::new(AtomicBool::new(false));
    let tell = |event: ExaminationEvent<'_>| match (event, slow) {
        (ExaminationEvent::Begins(_), Some(slow)) => make_slow(running.address, slow),
        (
            ExaminationEvent::Begins(_)
            | ExaminationEvent::Controlled(_)
            | ExaminationEvent::Ended(_),
            _,
        ) => {}
    };
    let record = examination.run(Vec::new(), cancelled, tell).await.unwrap();
    assert_eq!(record.probes.len(), probes.len(), "{name}: {:?}", record.controls);
    record.probes
}

pub(crate) fn make_slow(address: SocketAddr, milliseconds: u32) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!("POST /_hooks/slow?ms={milliseconds} HTTP/1.1\r\nHost: zoo\r\n");
    stream
        .write_all(format!("{head}Connection: close\r\nContent-Length: 0\r\n\r\n").as_bytes())
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_probe_finds_the_fault_that_is_meant_for_it() {
    let mut missed = Vec::new();
    for (name, slow, probe, class) in PLANTED {
        let mut found = probed(name, *slow, &[probe]).await.remove(0);
        for _ in 1..ATTEMPTS_MAX {
            if is_inconclusive(&found) {
                found = probed(name, *slow, &[probe]).await.remove(0);
            }
        }
        let is_found = match &found.verdict {
            ProbeVerdict::Fail { defects, .. } => {
                defects.iter().map(|defect| defect.class).min() == Some(*class)
            }
            ProbeVerdict::Pass { .. } | ProbeVerdict::Inconclusive { .. } => false,
        };
        println!("{name} {probe} {:?} {:?}", found.took, found.verdict);
        if !is_found {
            missed.push(format!("{name} {probe}: {:?}, {:?}", found.verdict, found.notes));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

fn is_inconclusive(record: &ProbeRecord) -> bool {
    matches!(record.verdict, ProbeVerdict::Inconclusive { .. })
}

/// All that race and cut, on a server that is correct.
async fn check_correct(name: &str) {
    let mut probes = PROBES.to_vec();
    let mut slow = None;
    let mut inconclusive = String::new();
    for _ in 0..ATTEMPTS_MAX {
        let found = probed(name, slow, &probes).await;
        let wrong: Vec<_> = found
            .iter()
            .filter(|found| matches!(found.verdict, ProbeVerdict::Fail { .. }))
            .map(|found| (found.probe.id, &found.verdict, &found.notes))
            .collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
        let again = found.iter().filter(|found| is_inconclusive(found));
        probes = again.clone().map(|found| found.probe.id).collect();
        if probes.is_empty() {
            return;
        }
        inconclusive =
            again.map(|found| format!("{} {:?}", found.probe.id, found.verdict)).collect();
        // What they say would help where the machine is busy.
        slow = Some(200);
    }
    panic!("{name}: {inconclusive}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_refuses_duplicates_passes() {
    check_correct("honest").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_lets_duplicates_wait_passes() {
    check_correct("honest-waiting").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_compares_members_passes() {
    check_correct("honest-by-members").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_layer_on_memory_passes() {
    check_correct("hapax-layer-memory").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_layer_on_sqlite_passes() {
    check_correct("hapax-layer-sqlite").await;
}
