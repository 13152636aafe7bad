//! What is said of stores that were restored, before anybody serves from them and after.

use hapax_services::postgres::{Server, Settings};

use super::Visit;
use crate::{
    hapax, text,
    world::{Behaviour, Gateway, Setup, Upstream, ask, post},
};

async fn pay(gateway: &Gateway, key: &str) -> u16 {
    ask(gateway.address, post("/pay", key, "ten")).await.unwrap().status
}

fn visit(store: &str) -> Visit {
    let visit = Visit::of(&["--after-restore", "--client-retries-for", "72h", "--store", store]);
    visit.check_words();
    visit
}

fn quarantine(task: &[&str], store: &str) {
    let output = hapax(&[&["quarantine"], task, &["--store", store]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[tokio::test]
async fn the_doctor_says_what_a_restored_server_may_miss_until_somebody_has_decided() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let mut server = Server::start(Settings::default()).unwrap();
    let mut gateway = Setup::new(upstream.address).store(&server.url()).start().await;
    assert_eq!(pay(&gateway, "kept").await, 201);
    let backup = server.backup(Settings::default()).unwrap();
    gateway.kill();
    server.kill().unwrap();
    let restored = backup.restore().unwrap();

    let before = visit(&restored.url());
    assert!(before.found("quarantine").starts_with("will be quarantined by the next process"));
    assert!(before.found("missing").starts_with("what was acknowledged after 20"));
    assert_eq!((before.level("quarantine"), before.level("missing")), ("warning", "note"));
    assert!(before.found("retries").starts_with("clients try for 3 d: the last retry"));

    gateway.store = restored.url();
    gateway.run().await;
    assert_eq!(pay(&gateway, "lost").await, 503);
    let during = visit(&restored.url());
    assert!(during.found("quarantine").starts_with("quarantined since 20"));
    let advice = during.finding("quarantine")["do"].as_str().unwrap();
    assert!(advice.starts_with("hapax quarantine lift --store"), "{advice}");

    quarantine(&["lift", "--who", "ada", "--why", "the bank has it"], &restored.url());
    let after = visit(&restored.url());
    let advice = after.finding("quarantine")["do"].as_str().unwrap();
    assert!(advice.starts_with("if ada did not mean this restore"), "{advice}");
    let unasked = Visit::of(&["--store", &restored.url()]);
    assert_eq!(unasked.level("quarantine"), "ok");
}

#[tokio::test]
async fn the_doctor_says_that_nobody_noticed_the_restore_of_a_file_and_how_to_say_so() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let mut gateway = Setup::new(upstream.address).start().await;
    assert_eq!(pay(&gateway, "kept").await, 201);
    gateway.signal("TERM");
    assert!(gateway.ended().await);

    let unnoticed = visit(&gateway.store);
    assert_eq!((unnoticed.level("quarantine"), unnoticed.code), ("danger", 2));
    let advice = unnoticed.finding("quarantine")["do"].as_str().unwrap();
    assert!(advice.contains("hapax quarantine begin"), "{advice}");

    quarantine(&["begin"], &gateway.store);
    let declared = visit(&gateway.store);
    assert_eq!(declared.level("quarantine"), "warning");
    assert!(declared.found("quarantine").ends_with("somebody said so"));
    gateway.run().await;
    assert_eq!((pay(&gateway, "kept").await, pay(&gateway, "new").await), (201, 503));
}
