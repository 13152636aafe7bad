use std::fs;

use xtask::services::{Action, WhichServer, run};

#[test]
fn a_server_that_is_up_is_remembered_by_its_url_until_it_is_down() {
    let root = tempfile::tempdir().unwrap();
    let url = root.path().join(".services/nats.url");
    run(root.path(), Action::Up { which: vec![WhichServer::Nats] }).unwrap();
    assert!(fs::read_to_string(&url).unwrap().starts_with("nats://127.0.0.1:"));
    run(root.path(), Action::Down { which: vec![WhichServer::All] }).unwrap();
    assert!(!url.exists());
}
