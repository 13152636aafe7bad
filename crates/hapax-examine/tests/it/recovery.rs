//! Failures, kills, restarts and the end of keys.

use std::{
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, SystemTime},
};

use hapax_examine::{
    Defect, DefectClass, Examination, ExaminationMemory, ExaminationRecord, Hook, Hooks, Probe,
    ProbeVerdict,
};
use hapax_zoo::{RunningSpecies, Species};

use crate::{process::SpeciesProcess, zoo::examination_at};

async fn run(examination: Examination) -> ExaminationRecord {
    let cancelled = Arc::new(AtomicBool::new(false));
    let record = Arc::new(examination).run(Vec::new(), cancelled, |_| {}).await.unwrap();
    assert!(record.learned.is_some(), "{:?}", record.controls);
    assert_eq!(record.probes.len(), 1);
    record
}

fn verdict(record: &ExaminationRecord) -> &ProbeVerdict {
    &record.probes[0].verdict
}

fn passed(name: &str, record: &ExaminationRecord) {
    let probe = &record.probes[0];
    let is_pass = matches!(probe.verdict, ProbeVerdict::Pass { .. });
    assert!(is_pass, "{name}: {:?}\n{:#?}", probe.verdict, probe.notes);
}

fn defects<'a>(name: &str, record: &'a ExaminationRecord) -> &'a [Defect] {
    let probe = &record.probes[0];
    match &probe.verdict {
        ProbeVerdict::Fail { defects, .. } => defects,
        other @ (ProbeVerdict::Pass { .. } | ProbeVerdict::Inconclusive { .. }) => {
            panic!("{name}: {other:?}\n{:#?}", probe.notes)
        }
    }
}

fn has(name: &str, record: &ExaminationRecord, class: DefectClass, words: &str) {
    let found = defects(name, record);
    let is_there =
        found.iter().any(|defect| defect.class == class && defect.sentence.contains(words));
    assert!(is_there, "{name}: {found:#?}");
}

fn reason(record: &ExaminationRecord) -> &str {
    match verdict(record) {
        ProbeVerdict::Inconclusive { reason } => reason,
        other @ (ProbeVerdict::Pass { .. } | ProbeVerdict::Fail { .. }) => panic!("{other:?}"),
    }
}

fn fail_hooks(running: &RunningSpecies) -> Hooks {
    let fail = |place: &str| {
        let url = format!("http://{}/_hooks/fail?effect={place}", running.address);
        Some(Hook::Request { method: "POST".to_owned(), url })
    };
    Hooks { fail_before: fail("before"), fail_after: fail("after"), ..Hooks::default() }
}

/// V18, with a short time after which a key is stuck.
async fn failed(name: &str, change: impl FnOnce(&mut Examination)) -> ExaminationRecord {
    let running = Species::named(name).unwrap().start().await.unwrap();
    let mut examination = examination_at([running.address, running.also], &["V18"]);
    examination.hooks = fail_hooks(&running);
    examination.bounds.recovery = Duration::from_secs(2);
    change(&mut examination);
    run(examination).await
}

/// Kills and starts a process, and slows it if that is wanted.
async fn killed(name: &'static str, probe: &str, is_slowed: bool) -> ExaminationRecord {
    let process = SpeciesProcess::start(name);
    let mut examination = examination_at(process.addresses, &[probe]);
    examination.hooks = process.hooks();
    if !is_slowed {
        examination.hooks.slow = None;
    }
    examination.bounds.recovery =
        Duration::from_secs(if name == "stuck-after-kill" { 5 } else { 60 });
    run(examination).await
}

#[tokio::test(flavor = "multi_thread")]
async fn correct_servers_pass_when_they_fail_and_are_retried() {
    for name in ["honest", "honest-waiting", "hapax-layer-memory", "hapax-layer-sqlite"] {
        passed(name, &failed(name, |_| {}).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_effect_after_a_failure_is_found() {
    for name in ["frees-key-after-500", "reaper-frees-stuck-keys", "key-stored-after-effect"] {
        has(name, &failed(name, |_| {}).await, DefectClass::Safety, "one key had 2 effects");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_is_kept_though_nothing_happened_is_found_unless_it_is_declared() {
    let found = failed("stores-500", |_| {}).await;
    has("stores-500", &found, DefectClass::Contract, "nothing happened");
    let declared = failed("stores-500", |one| one.declared.errors_kept = Some(true)).await;
    passed("stores-500", &declared);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_is_said_to_be_kept_and_is_not_is_found() {
    let found = failed("honest", |one| one.declared.errors_kept = Some(true)).await;
    has("honest", &found, DefectClass::Contract, "failures are said to be kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_effect_after_a_failure_is_found_by_its_name_where_nobody_counts() {
    let found = failed("stores-500", |one| one.oracle = None).await;
    has("stores-500", &found, DefectClass::Contract, "nothing happened");
    passed("honest", &failed("honest", |one| one.oracle = None).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_lets_nothing_fail_or_fails_itself_is_told() {
    let nothing = failed("honest", |one| {
        one.hooks =
            Hooks { fail_before: Some(Hook::Command("true".to_owned())), ..Hooks::default() };
    });
    assert!(reason(&nothing.await).contains("before its effect did not"));
    let failing = failed("honest", |one| {
        let command = "echo out; echo no such server >&2; exit 3".to_owned();
        one.hooks = Hooks { fail_before: Some(Hook::Command(command)), ..Hooks::default() };
    });
    let failing = failing.await;
    assert!(reason(&failing).contains("ended with 3: no such server"), "{}", reason(&failing));
    let refused = failed("honest", |one| {
        let Some(Hook::Request { url, .. }) = &mut one.hooks.fail_before else { panic!() };
        *url = url.replace("before", "never");
    });
    let refused = refused.await;
    assert!(reason(&refused).contains("was answered with 400: "), "{}", reason(&refused));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_writes_its_claims_passes_every_kill() {
    passed("honest-file", &killed("honest-file", "V23", true).await);
    passed("honest-file", &killed("honest-file", "V25", true).await);
    // Its effect and its answer are so close together that a kill meets the time between them at times only.
    let between = killed("honest-file", "V24", true).await;
    assert!(!matches!(verdict(&between), ProbeVerdict::Fail { .. }), "{between:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_stuck_after_a_kill_is_found() {
    let found = killed("stuck-after-kill", "V23", true).await;
    has("stuck-after-kill", &found, DefectClass::Liveness, "no retry of it succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_written_after_the_effect_is_found_by_a_kill_between() {
    let found = killed("key-stored-after-effect", "V24", true).await;
    has("key-stored-after-effect", &found, DefectClass::Safety, "one key had 2 effects");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_meets_requests_also_where_nothing_makes_them_slow() {
    let found = killed("stuck-after-kill", "V23", false).await;
    has("stuck-after-kill", &found, DefectClass::Liveness, "no retry of it succeeded");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_a_restart_forgets_are_found() {
    let found = killed("keys-in-memory", "V25", true).await;
    has("keys-in-memory", &found, DefectClass::Safety, "one key had 2 effects");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_that_kills_nothing_and_a_start_that_starts_nothing_are_told() {
    let process = SpeciesProcess::start("honest-file");
    let mut examination = examination_at(process.addresses, &["V25"]);
    examination.hooks = process.hooks();
    examination.hooks.kill = Some(Hook::Command("true".to_owned()));
    examination.hooks.start = Some(Hook::Command("true".to_owned()));
    assert!(reason(&run(examination).await).contains("went on taking connections"));

    let mut examination = examination_at(process.addresses, &["V25"]);
    examination.seed = 8;
    examination.hooks = process.hooks();
    examination.hooks.start = Some(Hook::Command("true".to_owned()));
    examination.bounds.recovery = Duration::from_secs(1);
    let record = run(examination).await;
    assert!(reason(&record).contains("takes no connections within 1 s"), "{}", reason(&record));
}

async fn expiring(name: &str, change: impl FnOnce(&mut Examination)) -> ExaminationRecord {
    let running = Species::named(name).unwrap().start().await.unwrap();
    let mut examination = examination_at([running.address, running.also], &["V26"]);
    change(&mut examination);
    run(examination).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_forgotten_before_its_time_is_found() {
    let kept_for = |seconds| {
        move |one: &mut Examination| {
            one.declared.retention = Some(Duration::from_secs(seconds));
        }
    };
    let found = expiring("forgets-before-its-time", kept_for(2)).await;
    has("forgets-before-its-time", &found, DefectClass::Safety, "are said to be known for 2 s");
    passed("honest", &expiring("honest", kept_for(2)).await);
}

/// The run that begins, and the one that resumes it after `later`.
async fn resumed(name: &str, later: Duration) -> (ExaminationRecord, ExaminationRecord) {
    let running = Species::named(name).unwrap().start().await.unwrap();
    let day = Duration::from_secs(24 * 3600);
    let began = SystemTime::UNIX_EPOCH + Duration::from_secs(1_900_000_000);
    let examination = |now, earlier| {
        let mut examination = examination_at([running.address, running.also], &["V26"]);
        examination.declared.retention = Some(day);
        examination.now = now;
        examination.earlier = earlier;
        examination
    };
    let first = run(examination(began, ExaminationMemory::default())).await;
    let written = serde_json::to_string(&first.memory).unwrap();
    // More than any server of the zoo that forgets does it after.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    let read = serde_json::from_str(&written).unwrap();
    let second = run(examination(began + later, read)).await;
    (first, second)
}

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_kept_for_days_is_looked_at_by_a_later_run() {
    let (first, second) = resumed("honest", 23 * HOUR).await;
    let words = "keys are kept for 1 d: come back in 21 h 36 min, and before 23 h 45 min are over";
    assert!(reason(&first).contains(words), "{}", reason(&first));
    assert_eq!(first.memory.awaited.len(), 1);
    passed("honest", &second);
    assert!(second.memory.awaited.is_empty());
    let (_, second) = resumed("forgets-before-its-time", 23 * HOUR).await;
    has("forgets-before-its-time", &second, DefectClass::Safety, "are said to be known for 1 d");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_comes_back_too_soon_or_too_late_is_told() {
    let (first, second) = resumed("honest", 4 * HOUR).await;
    assert!(reason(&second).contains("come back in 17 h 3"), "{}", reason(&second));
    assert_eq!(first.memory.awaited, second.memory.awaited);
    let (_, second) = resumed("forgets-before-its-time", 25 * HOUR).await;
    assert!(reason(&second).contains("too late to see"), "{}", reason(&second));
}

#[tokio::test]
async fn the_plan_counts_the_operations_of_what_can_be_run() {
    let here = std::net::SocketAddr::from(([127, 0, 0, 1], 9));
    let plan = |only: &[&str]| {
        let mut examination = examination_at([here, here], only);
        examination.hooks = Hooks::default();
        examination.bounds.racers = vec![2, 8];
        examination.bounds.race_trials = 5;
        examination.bounds.keys_between = 40;
        examination.operations_max()
    };
    let controls = plan(&["V18"]);
    assert_eq!(controls, 11, "without a hook, V18 begins nothing");
    assert_eq!(plan(&["V02"]), controls + 10);
    assert_eq!(plan(&["V22"]), controls + 43);
    let first = Probe::named("V01").unwrap().operations_max;
    assert_eq!(plan(&["V01", "V02", "V22"]), controls + first + 10 + 43);
}
