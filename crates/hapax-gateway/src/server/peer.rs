//! Who is at the other end of a connection.

use std::{net::SocketAddr, sync::Arc};

use http::HeaderValue;
use rustls::pki_types::CertificateDer;
use webpki::EndEntityCert;

/// The client's end of a connection: an extension of every request that came over it.
#[derive(Debug, Clone)]
pub struct Peer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    address: SocketAddr,
    forwarded_for: HeaderValue,
    is_secure: bool,
    certificate: Option<CertificateNames>,
}

/// The names in a certificate that was verified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CertificateNames {
    /// Its URIs.
    pub uris: Vec<String>,
    /// Its names of hosts, in lower case.
    pub dns: Vec<String>,
}

impl CertificateNames {
    /// The names in this certificate; none if it cannot be read.
    pub(crate) fn of(certificate: &CertificateDer<'_>) -> Self {
        let Ok(certificate) = EndEntityCert::try_from(certificate) else { return Self::default() };
        Self {
            uris: certificate.valid_uri_names().map(str::to_owned).collect(),
            dns: certificate.valid_dns_names().map(str::to_ascii_lowercase).collect(),
        }
    }
}

impl Peer {
    /// The peer at this address; `is_secure` if it came by TLS.
    pub fn new(address: SocketAddr, is_secure: bool) -> Self {
        let written = HeaderValue::try_from(address.ip().to_string());
        let forwarded_for = written.unwrap_or(HeaderValue::from_static("unknown"));
        Self(Arc::new(Inner { address, forwarded_for, is_secure, certificate: None }))
    }

    /// The same peer, who has proved to be named so.
    #[must_use]
    pub fn named(self, certificate: CertificateNames) -> Self {
        let Inner { address, is_secure, .. } = *self.0;
        let forwarded_for = self.0.forwarded_for.clone();
        let certificate = Some(certificate);
        Self(Arc::new(Inner { address, forwarded_for, is_secure, certificate }))
    }

    /// The names in the certificate that the client has shown, if it has.
    pub fn certificate(&self) -> Option<&CertificateNames> {
        self.0.certificate.as_ref()
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
