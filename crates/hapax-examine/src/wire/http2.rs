//! The same over HTTP/2.

use super::Wire;
use crate::HttpAddress;

/// Whether both sides agree on it: by ALPN with TLS, by prior knowledge without.
pub(super) async fn is_spoken(wire: &Wire, address: &HttpAddress) -> bool {
    wire.connect(address, &[b"h2"]).await.is_ok() && !address.tls
}
