use std::{
    io::{Read, Write},
    net::TcpStream,
};

use hapax_services::{
    ServiceError,
    postgres::{Mode, Server, Settings},
};
use tokio_postgres::NoTls;

/// Sends a start-up message and returns the kind of the server's first answer: `R` means that it
/// lets us in.
fn first_answer(url: &str) -> Option<u8> {
    let address = url.strip_prefix("postgres://postgres@")?.strip_suffix("/postgres")?;
    let mut socket = TcpStream::connect(address).ok()?;
    let parameters = b"user\0postgres\0database\0postgres\0\0";
    let len = u32::try_from(8 + parameters.len()).ok()?;
    let mut hello = Vec::new();
    hello.extend_from_slice(&len.to_be_bytes());
    hello.extend_from_slice(&(3_u32 << 16).to_be_bytes());
    hello.extend_from_slice(parameters);
    socket.write_all(&hello).ok()?;
    let mut kind = [0];
    socket.read_exact(&mut kind).ok()?;
    Some(kind[0])
}

#[test]
fn a_started_server_lets_clients_in_and_a_stopped_one_does_not() {
    let mut server = Server::start(Settings::default()).unwrap();
    let url = server.url();
    assert_eq!(first_answer(&url), Some(b'R'));
    assert!(server.pid().is_some());

    server.stop(Mode::Fast).unwrap();
    assert_eq!(first_answer(&url), None);
    assert_eq!(server.pid(), None);
    server.stop(Mode::Fast).unwrap();

    server.resume().unwrap();
    assert_eq!(server.url(), url);
    assert_eq!(first_answer(&url), Some(b'R'));
}

#[test]
fn a_restart_keeps_the_port_and_the_files_and_gives_a_new_process() {
    let mut server = Server::start(Settings::default()).unwrap();
    let (url, data, first) = (server.url(), server.data_dir(), server.pid());
    server.restart(Mode::Fast).unwrap();
    assert_eq!((server.url(), server.data_dir()), (url.clone(), data));
    assert_ne!(server.pid(), first);
    assert_eq!(first_answer(&url), Some(b'R'));
}

#[test]
fn a_crashed_server_recovers_when_it_starts_again() {
    let mut server = Server::start(Settings::default()).unwrap();
    server.restart(Mode::Immediate).unwrap();
    assert_eq!(first_answer(&server.url()), Some(b'R'));
    let log = std::fs::read_to_string(server.data_dir().join("../server.log")).unwrap();
    assert!(log.contains("was not properly shut down; automatic recovery in progress"), "{log}");
}

#[test]
fn dropping_a_server_stops_it_and_removes_its_files() {
    let server = Server::start(Settings::default()).unwrap();
    let (url, data) = (server.url(), server.data_dir());
    assert!(data.exists());
    drop(server);
    assert_eq!(first_answer(&url), None);
    assert!(!data.exists());
}

#[test]
fn two_servers_run_side_by_side() {
    let one = Server::start(Settings::default()).unwrap();
    let other = Server::start(Settings::default()).unwrap();
    assert_ne!(one.url(), other.url());
    drop(one);
    assert_eq!(first_answer(&other.url()), Some(b'R'));
}

#[test]
fn extra_settings_reach_the_server() {
    let config = vec!["logging_collector=off".to_owned(), "log_connections=on".to_owned()];
    let server = Server::start(Settings { config, ..Settings::default() }).unwrap();
    assert_eq!(first_answer(&server.url()), Some(b'R'));
    let log = std::fs::read_to_string(server.data_dir().join("../server.log")).unwrap();
    assert!(log.contains("connection authorized"), "{log}");
}

#[test]
fn a_server_that_cannot_start_shows_the_end_of_its_log() {
    let config = vec!["no_such_setting=1".to_owned()];
    let refusal = Server::start(Settings { config, ..Settings::default() }).unwrap_err();
    let ServiceError::Died { log, .. } = &refusal else { panic!("{refusal}") };
    assert!(log.contains("no_such_setting"), "{log}");
}

#[tokio::test]
async fn a_restored_server_takes_writes_however_long_its_recovery_goes_on_after_it_lets_clients_in()
{
    let server = Server::start(Settings::default()).unwrap();
    // Asked for at the end of the recovery, when clients may read.
    let config = vec!["restore_command=sleep 0.5; false".to_owned()];
    let backup = server.backup(Settings { config, ..Settings::default() }).unwrap();
    let restored = backup.restore().unwrap();
    let (client, connection) = tokio_postgres::connect(&restored.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("CREATE TABLE written (number integer)").await.unwrap();
}
