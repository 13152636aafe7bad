//! `hapax backup`: a copy of a store that is in use.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use tokio::task::JoinSet;

use crate::{
    failover::{metric, pay, refused_by_quarantine},
    hapax, text,
    world::{Behaviour, Database, Setup, Upstream, ask, post, until},
};

const CLIENTS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_made_under_load_holds_every_key_that_was_answered_before() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = Setup::new(upstream.address).start().await;
    let (done, answered) = (Arc::<AtomicBool>::default(), Arc::<Mutex<Vec<String>>>::default());
    let mut clients = JoinSet::new();
    for client in 0..CLIENTS {
        let (to, done, answered) = (gateway.address, Arc::clone(&done), Arc::clone(&answered));
        clients.spawn(async move {
            for number in (0..).take_while(|_| !done.load(Relaxed)) {
                let key = format!("{client}-{number}");
                assert_eq!(ask(to, post("/pay", &key, "ten")).await.unwrap().status, 201);
                answered.lock().unwrap().push(key);
            }
        });
    }
    until("some load", async || answered.lock().unwrap().len() > 200).await;
    let dir = tempfile::tempdir().unwrap();
    let (copy, before) = (dir.path().join("copy.db"), answered.lock().unwrap().clone());
    let (store, to) = (gateway.store.clone(), copy.display().to_string());
    let output =
        tokio::task::spawn_blocking(move || hapax(&["backup", "--store", &store, "--to", &to]));
    let output = output.await.unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let after = answered.lock().unwrap().len();
    until("load to go on", async || answered.lock().unwrap().len() > after + 20).await;
    done.store(true, Relaxed);
    clients.join_all().await;
    assert_eq!(fs::metadata(&copy).unwrap().permissions().mode() & 0o777, 0o600);
    let others: Vec<_> = fs::read_dir(dir.path()).unwrap().collect();
    assert_eq!(others.len(), 1, "nothing is left beside it: {others:?}");
    // Answered after the copy was made, by a process that then dies with its disk.
    let lost = pay(&gateway, "lost").await;
    assert_eq!((lost.status, lost.is_replay()), (201, false));
    drop(gateway);

    let effects = upstream.total();
    let shown = text(&hapax(&["quarantine", "show", "--store", &stored_in(&copy)]).stdout);
    assert!(shown.starts_with("will be quarantined by the next process that uses it"), "{shown}");
    let restored = Setup::new(upstream.address).store(&stored_in(&copy));
    let mut restored = restored.start().await;
    for key in &before {
        let answer = ask(restored.address, post("/pay", key, "ten")).await.unwrap();
        assert!(answer.is_replay(), "{key}: {answer:?}");
    }
    for key in ["lost", "new"] {
        let answer = pay(&restored, key).await;
        assert!(refused_by_quarantine(&answer), "{key}: {answer:?} {}", restored.log());
    }
    assert_eq!(upstream.total(), effects);

    let quarantine = |task: &[&str]| {
        let output = hapax(&[&["quarantine"], task, &["--store", &restored.store]].concat());
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let shown = quarantine(&["show"]);
    assert!(shown.starts_with("quarantined since 20"), "{shown}");
    let named = |what: &str| shown.lines().find_map(|line| line.strip_prefix(what)).unwrap();
    assert_ne!(named("it is "), named("it was"), "a copy is another file than its source");
    quarantine(&["lift", "--why", "the bank knows of nothing else"]);
    until("what is absent to run again", async || pay(&restored, "new").await.status == 201).await;
    restored.kill();
    restored.run().await;
    assert_eq!(metric(&restored, "hapax_store_quarantined").await, "0", "{}", restored.log());
    assert_eq!((upstream.effects("lost"), pay(&restored, "newer").await.status), (1, 201));
}

fn stored_in(file: &Path) -> String {
    format!("sqlite:{}", file.display())
}

fn refusal(store: &str, to: &Path) -> String {
    let output = hapax(&["backup", "--store", store, "--to", &to.display().to_string()]);
    assert!(!output.status.success(), "{}", text(&output.stdout));
    text(&output.stderr)
}

#[tokio::test]
async fn nothing_is_written_over_and_what_is_no_store_is_not_copied() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let gateway = Setup::new(upstream.address).start().await;
    let dir = tempfile::tempdir().unwrap();
    let taken = dir.path().join("taken");
    fs::write(&taken, "mine").unwrap();
    assert!(refusal(&gateway.store, &taken).contains("is there already"));
    assert_eq!(fs::read_to_string(&taken).unwrap(), "mine");
    let free = dir.path().join("free");
    let missing = stored_in(&dir.path().join("missing.db"));
    assert!(refusal(&missing, &free).contains("missing.db cannot be read"));
    assert!(refusal(&stored_in(&taken), &free).contains("taken"));
    let database = Database::create().await;
    assert!(refusal(&database.url, &free).contains("PostgreSQL's own means"));
    assert!(refusal("memory:", &free).contains("in memory"));
    let nowhere = dir.path().join("nowhere/copy.db");
    assert!(refusal(&gateway.store, &nowhere).contains("cannot be written"));
    let left: Vec<_> =
        fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["taken"]);
}
