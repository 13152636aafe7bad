//! A gateway as people run it: a process of its own, in front of an API that keeps a ledger.

mod database;
mod gateway;
mod persist;
mod raw;
mod upstream;
mod wire;

pub(crate) use self::{
    database::Database,
    gateway::{Gateway, Setup},
    persist::{Many, is_final, persist, persist_among},
    raw::Raw,
    upstream::{Behaviour, Upstream},
    wire::{Answer, Connection, ask, post},
};

use std::{net::SocketAddr, time::Duration};

/// How long anything is waited for before a test gives up.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Looks again and again until `seen` says yes.
pub(crate) async fn until(what: &str, mut seen: impl AsyncFnMut() -> bool) {
    let looking = async {
        while !seen().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, looking).await.is_ok(), "waited in vain: {what}");
}

/// An address nobody listens on.
pub(crate) fn free_address() -> SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}
