//! The program: a species as a process that is killed.

use std::{net::SocketAddr, path::Path, process::Stdio};

use hapax_zoo::SPECIES;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
};

use crate::client::{Ask, MARKER, get};

fn program() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax-zoo"));
    command.kill_on_drop(true).stdout(Stdio::piped());
    command
}

async fn serve(name: &str, state: &Path) -> (Child, SocketAddr) {
    let mut child = program().args(["serve", name, "--state"]).arg(state).spawn().unwrap();
    let line = BufReader::new(child.stdout.take().unwrap()).lines().next_line().await.unwrap();
    let line = line.unwrap();
    let address = line.strip_prefix("listening on http://").unwrap().split(' ').next().unwrap();
    (child, address.parse().unwrap())
}

/// How many effects there are after a request, a kill, a new start and the same request.
async fn effects_over_a_kill(name: &str) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let (mut child, address) = serve(name, &state).await;
    assert_eq!(Ask::with_key("k-1").send(address).await.status, 201);
    child.kill().await.unwrap();
    let (_child, address) = serve(name, &state).await;
    assert_eq!(Ask::with_key("k-1").send(address).await.status, 201);
    get(address, &format!("/payments?ref={MARKER}")).await.text.matches("\"id\"").count()
}

#[tokio::test]
async fn what_is_on_disk_survives_a_kill_and_what_is_in_memory_does_not() {
    assert_eq!(effects_over_a_kill("honest-file").await, 1);
    assert_eq!(effects_over_a_kill("honest").await, 1);
    assert_eq!(effects_over_a_kill("keys-in-memory").await, 2);
}

#[tokio::test]
async fn the_list_names_every_species() {
    let output = program().arg("list").output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), SPECIES.len());
    assert!(SPECIES.iter().zip(text.lines()).all(|(one, line)| line.starts_with(one.name)));
}

#[tokio::test]
async fn a_name_that_nothing_has_is_refused() {
    let status = program().args(["serve", "unicorn"]).stderr(Stdio::null()).status().await.unwrap();
    assert!(!status.success());
}
