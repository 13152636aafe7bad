use hapax_services::roster::{Roster, Service, Up};

use crate::broker::processes_of;

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

#[test]
fn a_broker_is_remembered_beside_postgres_with_all_its_processes() {
    let dir = tempfile::tempdir().unwrap();
    let postgres = Roster::at(dir.path());
    let rabbitmq = postgres.of(Service::RabbitMq);
    let Up::Started { url } = rabbitmq.up().unwrap() else { panic!("nothing ran before") };
    assert_eq!(rabbitmq.url(), Some(url));
    assert_eq!(postgres.url(), None);

    let files = std::fs::read_to_string(dir.path().join("rabbitmq.dir")).unwrap();
    let pids = std::fs::read_to_string(dir.path().join("rabbitmq.pid")).unwrap();
    assert_eq!(pids.split_whitespace().count(), 2, "the node and its port mapper: {pids}");
    assert!(rabbitmq.down().unwrap());
    assert_eq!(processes_of(files.as_ref()), Vec::<u32>::new());
    assert_eq!(rabbitmq.url(), None);
}
