//! An HTTP gateway that gives any API behind it one effect per key.
//!
//! - [`Config`] says what is protected and how;
//! - [`Gateway`] serves it, is reloaded and drained;
//! - [`client::UpstreamClient`] speaks to the upstream, and knows whether anything was sent;
//! - [`telemetry::Telemetry`] is told of each request, for traces and an access log.
//!
//! A request is served by one thread from its first byte to its last: each worker has a runtime,
//! connections and upstream connections of its own. They share one engine.

pub mod admin;
pub mod client;
pub mod config;
mod gateway;
mod proxy;
mod server;
mod size_hint;
pub mod telemetry;
pub mod tenant;

pub use self::{
    config::Config,
    gateway::{Gateway, GatewayParts, Listeners, StartError, serve_relay_pages},
    server::{CertificateNames, Peer, TlsError},
};
