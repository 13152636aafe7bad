//! The side clients see: listeners, connections, workers.

mod accept;
mod connection;
mod handler;
mod linger;
mod peer;
mod refusal;
mod tls;
mod watch;
mod worker;

pub(crate) use self::{
    accept::Acceptor,
    connection::{Protocols, Serving, Wiring},
    tls::server_config,
    watch::Bounds,
    worker::Workers,
};
pub use self::{peer::Peer, tls::TlsError};
