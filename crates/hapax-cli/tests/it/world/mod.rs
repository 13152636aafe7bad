//! A gateway as people run it: a process of its own, in front of an API that keeps a ledger.

mod database;
mod gateway;
mod persist;
mod raw;
mod upstream;
mod wire;

pub(crate) use self::{
    database::Database,
    gateway::{Gateway, Setup, program_before},
    persist::{Many, is_final, persist, persist_among},
    raw::Raw,
    upstream::{Behaviour, Upstream},
    wire::{Answer, Connection, ask, post},
};

use std::{
    net::{SocketAddr, TcpListener},
    process,
    sync::atomic::{AtomicU16, Ordering::Relaxed},
    time::Duration,
};

/// How long anything is waited for before a test gives up: long enough for a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Looks again and again until `seen` says yes.
pub(crate) async fn until(what: &str, mut seen: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !seen().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, looking).await.is_ok(), "waited in vain: {what}");
}

/// An address nobody listens on, nor will: not one that the system gives to whoever asks for any.
pub(crate) fn free_address() -> SocketAddr {
    static TAKEN: AtomicU16 = AtomicU16::new(0);
    // Another run of the tests at the same time starts elsewhere.
    let start = process::id().wrapping_mul(97);
    loop {
        let number = start.wrapping_add(TAKEN.fetch_add(1, Relaxed).into());
        let port = FIRST_PORT + u16::try_from(number % PORTS).unwrap();
        if let Ok(free) = TcpListener::bind(("127.0.0.1", port)) {
            return free.local_addr().unwrap();
        }
    }
}

/// Ports below those that Linux hands out by itself, and between those of servers for tests and those of the
/// demo: each of them comes back to its port after a kill, and must find it free.
const FIRST_PORT: u16 = 15_000;
const PORTS: u32 = 3_000;
