use hapax_services::roster::{Roster, Up};

#[test]
fn a_remembered_server_is_found_again_until_it_is_taken_down() {
    let dir = tempfile::tempdir().unwrap();
    let roster = Roster::at(dir.path().join("services"));
    assert_eq!(roster.url(), None);

    let Up::Started { url } = roster.up().unwrap() else { panic!("nothing ran before") };
    let again = Roster::at(dir.path().join("services"));
    assert_eq!(again.url(), Some(url.clone()));
    assert_eq!(again.up().unwrap(), Up::WasRunning { url });

    assert!(again.down().unwrap());
    assert_eq!(roster.url(), None);
    assert!(!roster.down().unwrap());
}

#[test]
fn a_remembered_server_that_died_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let gone = dir.path().join("gone");
    std::fs::create_dir(&gone).unwrap();
    for (part, text) in [("pid", "1"), ("dir", gone.to_str().unwrap()), ("url", "postgres://x")] {
        std::fs::write(dir.path().join(format!("postgres.{part}")), text).unwrap();
    }
    let roster = Roster::at(dir.path());
    assert_eq!(roster.url(), None);
    assert!(matches!(roster.up().unwrap(), Up::Started { .. }));
    assert!(!gone.exists());
    assert!(roster.down().unwrap());
}
