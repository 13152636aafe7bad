//! The examples in other languages, run as their pages say.

mod gateway;
mod installed;
mod isolation;
mod transactions;

use std::{
    net::SocketAddr,
    path::PathBuf,
    process::{Child, Command},
};

use crate::{
    foreign::not_checked,
    world::{ask, until},
};

/// What an example is written in.
#[derive(Debug, Clone, Copy)]
enum Language {
    Python,
    Node,
}

impl Language {
    fn program(self) -> &'static str {
        match self {
            Self::Python => "python3",
            Self::Node => "node",
        }
    }

    /// Whether it is installed, which in CI it must be.
    fn is_there(self) -> bool {
        let version = Command::new(self.program()).arg("--version").output();
        let is_there = version.is_ok_and(|version| version.status.success());
        if !is_there {
            leave_out(self, "it is not installed");
        }
        is_there
    }
}

/// Says that the examples in a language are not checked; in CI that is a failure.
fn leave_out(language: Language, why: &str) {
    not_checked(&format!("the examples in {language:?}"), why);
}

/// Where an example is.
fn example(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(folder)
}

/// An API in a process of its own; killed when dropped.
struct Api {
    address: SocketAddr,
    child: Child,
}

impl Api {
    /// Starts it and waits until it answers.
    async fn start(address: SocketAddr, mut command: Command) -> Self {
        let api = Self { address, child: command.spawn().unwrap() };
        let request = "GET /payments HTTP/1.1\r\nhost: a\r\n\r\n";
        until("the API to answer", async || ask(address, request).await.is_some()).await;
        api
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        // It may have ended by itself, which the test has noticed already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
