//! Scripts of this folder with the packages they name, installed once and kept from run to run.

use std::{
    fs::{self, File},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use tokio::net::TcpStream;

use crate::{
    foreign::not_checked,
    text,
    world::{free_address, until},
};

const FILES: [(&str, &str); 6] = [
    ("package.json", include_str!("package.json")),
    ("package-lock.json", include_str!("package-lock.json")),
    ("requirements.txt", include_str!("requirements.txt")),
    ("calls.py", include_str!("calls.py")),
    ("rooms.py", include_str!("rooms.py")),
    ("visitor.mjs", include_str!("visitor.mjs")),
];
const LISTS: [usize; 2] = [1, 2];
const STEPS: [&[&str]; 3] = [
    &["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"],
    &["python3", "-m", "venv", "--clear", ".venv"],
    &[".venv/bin/pip", "install", "--quiet", "-r", "requirements.txt"],
];

/// A folder with all of it.
pub(super) struct Packages(PathBuf);

impl Packages {
    /// `None` if they cannot be had, which has been told.
    pub(super) fn installed() -> Option<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("passage");
        fs::create_dir_all(&folder).unwrap();
        // Tests that run side by side need the same packages: each waits for the first.
        let lock = File::create(folder.join("lock")).unwrap();
        lock.lock().unwrap();
        for (name, content) in FILES {
            if fs::read_to_string(folder.join(name)).ok().as_deref() != Some(content) {
                fs::write(folder.join(name), content).unwrap();
            }
        }
        let (mark, lists) = (folder.join("installed"), LISTS.map(|at| FILES[at].1).concat());
        if fs::read_to_string(&mark).ok().as_deref() == Some(&*lists) {
            return Some(Self(folder));
        }
        for step in STEPS {
            let output = Command::new(step[0]).args(&step[1..]).current_dir(&folder).output();
            let why = match output {
                Ok(output) if output.status.success() => continue,
                Ok(output) => text(&output.stderr),
                Err(error) => error.to_string(),
            };
            not_checked("what others wrote", &format!("`{}`: {why}", step.join(" ")));
            return None;
        }
        fs::write(mark, lists).unwrap();
        Some(Self(folder))
    }

    pub(super) fn python(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.0.join(".venv/bin/python"));
        command.args(args).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    pub(super) fn node(&self, args: &[&str]) -> Command {
        let mut command = Command::new("node");
        command.args(args).current_dir(&self.0).stdin(Stdio::null());
        command
    }

    /// Starts this script as a server, and waits until it takes connections.
    pub(super) async fn serve(&self, script: &str) -> Server {
        let address = free_address();
        let mut command = self.python(&[script, "serve", &address.port().to_string()]);
        // What it says of connections that only look whether it is there is of no use.
        let child = command.stderr(Stdio::null()).spawn().unwrap();
        let server = Server { address, child };
        until("the server to listen", async || TcpStream::connect(address).await.is_ok()).await;
        server
    }
}

/// Runs a program to its end; what it said.
pub(super) async fn said_by(mut command: Command) -> String {
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// A server in a process of its own; killed when dropped.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    child: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
