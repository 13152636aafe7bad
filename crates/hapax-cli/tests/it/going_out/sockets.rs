//! Sockets that whoever starts the gateway has opened, and what it is told.

use std::{
    net::{SocketAddr, TcpListener},
    os::{fd::OwnedFd, unix::net::UnixDatagram},
    path::Path,
    process::{Child, Command, Stdio},
};

use tempfile::TempDir;

use crate::{
    foreign::Program,
    world::{Behaviour, Connection, PATIENCE, Upstream, ask, free_address, post, until},
};

const ACTIVATOR: Program = Program {
    name: "systemd-socket-activate",
    asked: "--version",
    says: "systemd",
    package: "systemd",
    remedy: "install systemd",
};

/// The program under a parent of the test's own; killed when dropped.
struct Started(Child);

impl Started {
    fn terminate(&self) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").arg(&pid).status().unwrap().success());
    }

    async fn ended(&mut self) -> bool {
        let mut status = None;
        until("it to end", async || {
            status = self.0.try_wait().unwrap();
            status.is_some()
        })
        .await;
        status.unwrap().success()
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An address that nobody may listen on, so that a socket that was passed is the only one.
const NOWHERE: &str = "127.0.0.1:1";

/// What is given to `hapax`.
fn arguments(upstream: &Upstream, dir: &Path, listen: &str, admin: &str) -> Vec<String> {
    let store = format!("sqlite:{}", dir.join("hapax.db").display());
    let upstream = format!("http://{}", upstream.address);
    let all = ["serve", "--upstream", &upstream, "--store", &store, "--listen", listen];
    all.iter().chain(&["--admin", admin]).map(|text| (*text).to_owned()).collect()
}

/// The program with this socket as its third file, as systemd passes one.
fn pass(socket: &TcpListener, arguments: &[String]) -> Started {
    let script = "exec 3<&0 0</dev/null; export LISTEN_PID=$$ LISTEN_FDS=1; exec \"$@\"";
    let mut shell = Command::new("sh");
    shell.args(["-c", script, "sh", env!("CARGO_BIN_EXE_hapax")]).args(arguments);
    shell.stdin(Stdio::from(OwnedFd::from(socket.try_clone().unwrap()))).stderr(Stdio::null());
    Started(shell.spawn().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_comes_while_nobody_runs_is_answered_by_the_next() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let (dir, socket) = (tempfile::tempdir().unwrap(), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = socket.local_addr().unwrap();
    let arguments = arguments(&upstream, dir.path(), NOWHERE, "off");
    let mut first = pass(&socket, &arguments);
    assert_eq!(ask(address, post("/pay", "before", "ten")).await.unwrap().status, 201);
    first.terminate();
    assert!(first.ended().await);
    let mut waiting = Connection::open(address).await;
    waiting.send(post("/pay", "meanwhile", "ten")).await;
    let again = tokio::spawn(ask(address, post("/pay", "before", "ten")));
    let mut second = pass(&socket, &arguments);
    assert_eq!(waiting.answer().await.unwrap().status, 201);
    assert!(again.await.unwrap().unwrap().is_replay());
    assert_eq!(upstream.total(), 2);
    second.terminate();
    assert!(second.ended().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn systemd_passes_both_sockets_by_name() {
    if !ACTIVATOR.is_there() {
        return;
    }
    let upstream = Upstream::start(Behaviour::default()).await;
    let dir = tempfile::tempdir().unwrap();
    let (clients, admin) = (free_address(), free_address());
    let _gateway = activate(&dir, &upstream, &[("admin", admin), ("clients", clients)]);
    until("it to be ready", async || {
        let ready = ask(admin, "GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n").await;
        ready.is_some_and(|answer| answer.status == 200)
    })
    .await;
    assert_eq!(ask(clients, post("/pay", "k", "ten")).await.unwrap().status, 201);
    let unnamed = [("one", free_address()), ("other", free_address())];
    let mut refused = activate(&dir, &upstream, &unnamed);
    until("it to refuse", async || {
        let _ = ask(unnamed[0].1, "GET / HTTP/1.1\r\n\r\n").await;
        refused.0.try_wait().unwrap().is_some_and(|status| !status.success())
    })
    .await;
}

fn activate(dir: &TempDir, upstream: &Upstream, sockets: &[(&str, SocketAddr)]) -> Started {
    let mut command = Command::new(ACTIVATOR.name);
    let names: Vec<_> = sockets.iter().map(|(name, _)| *name).collect();
    command.args(sockets.iter().map(|(_, address)| format!("--listen={address}")));
    command.arg(format!("--fdname={}", names.join(":"))).arg(env!("CARGO_BIN_EXE_hapax"));
    command.args(arguments(upstream, dir.path(), NOWHERE, "127.0.0.1:2"));
    Started(command.stderr(Stdio::null()).spawn().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn systemd_is_told_when_it_is_ready_alive_reloaded_and_stopping() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let told = UnixDatagram::bind(&path).unwrap();
    told.set_read_timeout(Some(PATIENCE)).unwrap();
    let heard = |socket: &UnixDatagram| {
        let mut message = [0; 64];
        let length = socket.recv(&mut message).unwrap();
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    let mut command = Command::new(env!("CARGO_BIN_EXE_hapax"));
    command.args(arguments(&upstream, dir.path(), "127.0.0.1:0", "off"));
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "100000").stderr(Stdio::null());
    let mut gateway = Started(command.spawn().unwrap());
    assert_eq!(heard(&told), "READY=1");
    assert_eq!(heard(&told), "WATCHDOG=1");
    let pid = gateway.0.id().to_string();
    assert!(Command::new("kill").args(["-HUP", &pid]).status().unwrap().success());
    let mut messages = Vec::new();
    while messages.len() < 2 {
        messages.extend(Some(heard(&told)).filter(|message| message != "WATCHDOG=1"));
    }
    gateway.terminate();
    while messages.len() < 3 {
        messages.extend(Some(heard(&told)).filter(|message| message != "WATCHDOG=1"));
    }
    assert_eq!(messages, ["RELOADING=1", "READY=1", "STOPPING=1"]);
    assert!(gateway.ended().await);
}
