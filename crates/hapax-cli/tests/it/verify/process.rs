//! Servers as processes that `--kill-cmd` and `--start-cmd` kill and start: this program once more.

use std::{
    env,
    fmt::Write as _,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use hapax_zoo::{Options, Species};
use tempfile::TempDir;

use crate::world::{PATIENCE, free_address};

/// What such a process serves.
const ROLE: &str = "HAPAX_VERIFIED_SERVER";
/// After this it ends by itself, if whoever started it was not able to.
const LIFETIME: Duration = Duration::from_secs(1_800);

/// What is served.
#[derive(Clone, Copy)]
pub(super) enum ServedProcess {
    /// A species of the zoo, with a file.
    Species(&'static str),
    /// Who asks the provider that is at this address for each payment, under the client's key.
    Payer { upstream: SocketAddr },
}

/// Runs until this is dropped, but for kills.
pub(super) struct KillableServer {
    pub(super) address: SocketAddr,
    pub(super) also: SocketAddr,
    served: ServedProcess,
    folder: TempDir,
}

impl KillableServer {
    pub(super) fn start(served: ServedProcess) -> Self {
        let (address, also) = (free_address(), free_address());
        let server = Self { address, also, served, folder: tempfile::tempdir().unwrap() };
        shell(&server.start_command());
        let looks = PATIENCE.as_millis() / 20;
        let listens = (0..looks).any(|_| {
            thread::sleep(Duration::from_millis(20));
            TcpStream::connect(server.address).is_ok()
        });
        assert!(listens, "nothing listens at {address}");
        server
    }

    pub(super) fn kill_command(&self) -> String {
        format!("kill -9 $(cat '{}')", self.folder.path().join("pid").display())
    }

    pub(super) fn start_command(&self) -> String {
        let (address, also) = (self.address, self.also);
        let state = self.folder.path().join("state");
        let role = match self.served {
            ServedProcess::Species(name) => format!("{name}|{address}|{also}|{}", state.display()),
            ServedProcess::Payer { upstream } => format!("payer|{address}|{upstream}|"),
        };
        format!(
            "{ROLE}='{role}' '{}' --exact {} --nocapture > /dev/null 2>&1 & echo $! > '{}'",
            env::current_exe().unwrap().display(),
            "verify::process::a_process_serves_what_it_is_told",
            self.folder.path().join("pid").display()
        )
    }
}

impl Drop for KillableServer {
    fn drop(&mut self) {
        shell(&self.kill_command());
    }
}

#[test]
fn a_process_serves_what_it_is_told() {
    // Told nothing, it is one of many tests.
    let Ok(role) = env::var(ROLE) else { return };
    let parts: Vec<_> = role.split('|').collect();
    let [name, address, other, state] = parts[..] else { unreachable!("{role}") };
    let (address, other) = (address.parse().unwrap(), other.parse().unwrap());
    if name == "payer" {
        thread::spawn(move || pay(address, other));
        thread::sleep(LIFETIME);
        return;
    }
    let options = Options { listen: address, also: other, state: Some(state.into()) };
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let _running = Species::named(name).unwrap().start_with(options).await.unwrap();
        tokio::time::sleep(LIFETIME).await;
    });
}

/// Asks the upstream for each payment: it keeps nothing itself, and its provider knows the keys.
fn pay(address: SocketAddr, upstream: SocketAddr) {
    for connection in TcpListener::bind(address).unwrap().incoming() {
        thread::spawn(move || -> Option<()> {
            let mut connection = connection.ok()?;
            let (head, body) = request(&mut connection)?;
            let answer = match head.lines().next() {
                Some(line) if line.starts_with("POST") => ask(upstream, key(&head), &body)?,
                Some(_) | None => "HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n".to_owned(),
            };
            connection.write_all(answer.as_bytes()).ok()
        });
    }
}

fn key(head: &str) -> Option<&str> {
    head.lines().find_map(|line| line.strip_prefix("Idempotency-Key: "))
}

/// Posts this, and gives the answer as it came; nothing if none did.
pub(super) fn ask(upstream: SocketAddr, key: Option<&str>, body: &str) -> Option<String> {
    let mut connection = TcpStream::connect(upstream).ok()?;
    let length = body.len();
    let mut head = format!(
        "POST / HTTP/1.1\r\nHost: upstream\r\nConnection: close\r\nContent-Length: {length}\r\n"
    );
    if let Some(key) = key {
        write!(head, "Idempotency-Key: {key}\r\n").ok()?;
    }
    connection.write_all(format!("{head}\r\n{body}").as_bytes()).ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok().filter(|bytes| *bytes > 0)?;
    Some(answer)
}

/// A request with its body, whose length is said.
fn request(connection: &mut TcpStream) -> Option<(String, String)> {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap_or(0)) {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
        match connection.read(&mut chunk).ok()? {
            0 => return None,
            read => bytes.extend_from_slice(chunk.get(..read)?),
        }
    }
}

fn shell(command: &str) {
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdout(Stdio::null()).stderr(Stdio::null());
    shell.status().unwrap();
}
