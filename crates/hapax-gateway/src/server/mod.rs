//! The side clients see: listeners, connections, workers. What operators see is served by the same means.

mod accept;
mod admin;
mod connection;
mod descriptors;
mod handler;
mod linger;
mod pace;
mod peer;
mod refusal;
mod response_body;
mod tls;
mod tunnel;
mod watch;
mod watched_io;
mod worker;

pub(crate) use self::{
    accept::Acceptor,
    admin::AdminServer,
    connection::{Protocols, Serving, Shares, Wiring},
    descriptors::for_clients,
    pace::Pace,
    tls::{HTTP1, HTTP2, identity, server_config},
    watch::Bounds,
    worker::Workers,
};
pub use self::{
    peer::{CertificateNames, Peer},
    tls::TlsError,
};
