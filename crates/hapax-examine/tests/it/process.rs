//! A species as a process that is killed and started again: this program once more.

use std::{
    env,
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::PathBuf,
    process::Command,
    time::Duration,
};

use hapax_examine::{Hook, Hooks};
use hapax_zoo::{Options, Species};
use tempfile::TempDir;

/// What such a process serves: name, both addresses, and the file it keeps its state in.
const ROLE: &str = "HAPAX_EXAMINE_SPECIES";
/// After this it ends by itself, if whoever started it was not able to.
const LIFETIME: Duration = Duration::from_secs(600);

/// Serves a species and keeps what it has on disk; killed when this is dropped.
pub(crate) struct SpeciesProcess {
    pub(crate) addresses: [SocketAddr; 2],
    name: &'static str,
    folder: TempDir,
}

impl SpeciesProcess {
    pub(crate) fn start(name: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let process = Self { addresses: [free_port(), free_port()], name, folder };
        assert!(shell(&process.start_command()).success());
        let listens = (0..3_000).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            TcpStream::connect(process.addresses[1]).is_ok()
        });
        assert!(listens, "{name} does not listen");
        process
    }

    /// Kills, starts and slows it.
    pub(crate) fn hooks(&self) -> Hooks {
        let slow = format!("http://{}/_hooks/slow?ms=", self.addresses[0]);
        let post = |url: String| Some(Hook::Request { method: "POST".to_owned(), url });
        Hooks {
            kill: Some(Hook::Command(self.kill_command())),
            start: Some(Hook::Command(self.start_command())),
            slow: post(format!("{slow}{{milliseconds}}")),
            fast: post(format!("{slow}20")),
            slow_by: Duration::from_millis(300),
            ..Hooks::default()
        }
    }

    pub(crate) fn kill_command(&self) -> String {
        format!("kill -9 $(cat '{}')", self.pid_file().display())
    }

    pub(crate) fn start_command(&self) -> String {
        let [listen, also] = self.addresses;
        let state = self.folder.path().join("state");
        format!(
            "{ROLE}='{}|{listen}|{also}|{}' '{}' --exact {} --nocapture & echo $! > '{}'",
            self.name,
            state.display(),
            env::current_exe().unwrap().display(),
            "process::a_process_serves_the_species_that_it_is_told",
            self.pid_file().display()
        )
    }

    fn pid_file(&self) -> PathBuf {
        self.folder.path().join("pid")
    }
}

impl Drop for SpeciesProcess {
    fn drop(&mut self) {
        shell(&self.kill_command());
    }
}

#[test]
fn a_process_serves_the_species_that_it_is_told() {
    // Told nothing, it is one of many tests.
    let Ok(role) = env::var(ROLE) else { return };
    let parts: Vec<_> = role.split('|').collect();
    let [name, listen, also, state] = parts[..] else { panic!("{role}") };
    let options = Options {
        listen: listen.parse().unwrap(),
        also: also.parse().unwrap(),
        state: Some(state.into()),
    };
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let _running = Species::named(name).unwrap().start_with(options).await.unwrap();
        tokio::time::sleep(LIFETIME).await;
    });
}

/// A port that is nobody's, and none of those that clients are given while nobody listens on it.
fn free_port() -> SocketAddr {
    loop {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, fastrand::u16(12_000..32_000)));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

fn shell(command: &str) -> std::process::ExitStatus {
    Command::new("sh")
        .args(["-c", command])
        .stderr(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap()
}
