//! Who is at the other end of a connection.

use std::{net::SocketAddr, sync::Arc};

use http::HeaderValue;

/// The client's end of a connection: an extension of every request that came over it.
#[derive(Debug, Clone)]
pub struct Peer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    address: SocketAddr,
    forwarded_for: HeaderValue,
    is_secure: bool,
}

impl Peer {
    /// The peer at this address; `is_secure` if it came by TLS.
    pub fn new(address: SocketAddr, is_secure: bool) -> Self {
        let written = HeaderValue::try_from(address.ip().to_string());
        let forwarded_for = written.unwrap_or(HeaderValue::from_static("unknown"));
        Self(Arc::new(Inner { address, forwarded_for, is_secure }))
    }

    /// The address the connection came from: the client's, or that of a proxy before us.
    pub fn address(&self) -> SocketAddr {
        self.0.address
    }

    /// Whether the connection is protected by TLS.
    pub fn is_secure(&self) -> bool {
        self.0.is_secure
    }

    pub(crate) fn forwarded_for(&self) -> &HeaderValue {
        &self.0.forwarded_for
    }
}
