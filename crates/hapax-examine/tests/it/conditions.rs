//! What a probe asks about must have come about, and what helps it is used.

use std::{
    collections::HashMap,
    fs,
    sync::{Arc, Mutex, atomic::AtomicBool},
    thread,
    time::Duration,
};

use hapax_examine::{DefectClass, Examination, Hook, Hooks, ProbeRecord, ProbeVerdict};

use crate::{played_api::PlayedApi, zoo};

const WORK: Duration = Duration::from_millis(20);

/// Takes so many requests with one key, hangs up on more of them up to the fiftieth, and takes what comes later.
async fn crowded(most: u32, headers: &'static str) -> PlayedApi {
    let asked: Mutex<HashMap<String, u32>> = Mutex::default();
    PlayedApi::start(move |request| {
        let key = request.header("Idempotency-Key")?.trim_matches('"').to_owned();
        // Work takes longer than it takes to ask for it.
        tokio::task::block_in_place(|| thread::sleep(WORK));
        let mut asked = asked.lock().unwrap();
        let number = asked.entry(key.clone()).or_default();
        *number += 1;
        let is_taken = *number <= most || *number > 50;
        is_taken.then(|| (201, headers.to_owned(), format!("{{\"id\":\"{key}\"}}")))
    })
    .await
}

async fn probed(
    api: &PlayedApi,
    probe: &str,
    change: impl FnOnce(&mut Examination),
) -> ProbeRecord {
    let to = format!("127.0.0.1:{}", api.address.port).parse().unwrap();
    let mut examination = zoo::examination_at([to, to], &[probe]);
    (examination.oracle, examination.hooks) = (None, Hooks::default());
    examination.bounds.race_trials = 4;
    change(&mut examination);
    let examination = Arc::new(examination);
    let record = examination.run(Vec::new(), Arc::new(AtomicBool::new(false)), |_| {}).await;
    record.unwrap().probes.remove(0)
}

fn reason(record: &ProbeRecord) -> String {
    match &record.verdict {
        ProbeVerdict::Inconclusive { reason } => reason.clone(),
        other @ (ProbeVerdict::Pass { .. } | ProbeVerdict::Fail { .. }) => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn duplicates_that_never_met_are_no_pass_whatever_fewer_of_them_showed() {
    let api = crowded(5, "").await;
    let record = probed(&api, "V02", |one| one.bounds.racers = vec![2, 50]).await;
    let told = reason(&record);
    assert!(
        told.contains("50 duplicates (no more than 5 of them) were never with the API"),
        "{told}"
    );
    assert!(told.contains("nothing was wrong with 2") && told.contains("--slow-hook"), "{told}");
    let reach = "4 races of 2 duplicates, 0 races of 50 duplicates: sent before the first success was heard";
    assert_eq!(record.reach.as_deref(), Some(reach));
}

#[tokio::test(flavor = "multi_thread")]
async fn races_say_how_many_came_in_time() {
    let api = crowded(30, "").await;
    let record = probed(&api, "V02", |one| one.bounds.racers = vec![50]).await;
    assert_eq!(record.verdict, ProbeVerdict::Pass { trials: 4 });
    let reach = record.reach.unwrap();
    assert!(reach.starts_with("4 races of 50 duplicates (at least 30 of them)"), "{reach}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_made_slow_only_where_duplicates_do_not_meet_and_fast_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("done");
    let done = |word: &str| Some(Hook::Command(format!("echo {word} >> '{}'", file.display())));
    let hooks = Hooks { slow: done("slow"), fast: done("fast"), ..Hooks::default() };
    for (most, is_needed) in [(50, false), (5, true)] {
        let (api, hooks) = (crowded(most, "").await, hooks.clone());
        let record = probed(&api, "V02", |one| {
            (one.bounds.racers, one.hooks) = (vec![50], hooks);
        });
        let record = record.await;
        assert_eq!(matches!(record.verdict, ProbeVerdict::Pass { .. }), !is_needed, "{record:?}");
        let told = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(told, if is_needed { "slow\nfast\n" } else { "" });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_that_caches_may_keep_is_found() {
    const MARK: &str = "Idempotent-Replayed: true\r\n";
    for (headers, is_found) in [
        ("Cache-Control: public, max-age=60\r\nIdempotent-Replayed: true\r\n", true),
        ("Expires: Thu, 01 Jan 2099 00:00:00 GMT\r\nIdempotent-Replayed: true\r\n", true),
        ("Cache-Control: max-age=60, no-store\r\nIdempotent-Replayed: true\r\n", false),
        (MARK, false),
    ] {
        let api = crowded(50, headers).await;
        let record = probed(&api, "V27", |_| {}).await;
        let found = match &record.verdict {
            ProbeVerdict::Fail { defects, .. } => {
                assert_eq!(defects.len(), 1, "{defects:?}");
                assert_eq!(defects[0].class, DefectClass::Hygiene);
                defects[0].sentence.contains("may be kept by caches")
            }
            ProbeVerdict::Pass { .. } | ProbeVerdict::Inconclusive { .. } => false,
        };
        assert_eq!(found, is_found, "{headers}: {:?}", record.verdict);
    }
}
