//! A connection, with or without TLS.

use std::{io, sync::Arc, time::Duration};

use bytes::BytesMut;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::WireError;
use crate::HttpAddress;

/// A connection that bytes can be written to and read from.
#[derive(Debug)]
pub(super) enum WireStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// What servers are verified by: what this machine trusts, and these.
pub(super) fn tls(trusted: &[CertificateDer<'static>]) -> Result<Arc<ClientConfig>, WireError> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots.add_parsable_certificates(trusted.iter().cloned());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(Arc::new(builder.with_root_certificates(roots).with_no_client_auth()))
}

impl WireStream {
    pub(super) async fn connect(
        address: &HttpAddress,
        config: &Arc<ClientConfig>,
        protocols: &[&[u8]],
    ) -> io::Result<Self> {
        let tcp = TcpStream::connect((address.host.as_str(), address.port)).await?;
        // Without it, what is sent in two pieces comes late.
        tcp.set_nodelay(true)?;
        if !address.tls {
            return Ok(Self::Plain(tcp));
        }
        let mut config = ClientConfig::clone(config);
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from(address.host.clone()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self::Tls(Box::new(connector.connect(name, tcp).await?)))
    }

    /// Hands all of it to the kernel; with TLS, as records of its own.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let written = async {
            match self {
                Self::Plain(tcp) => tcp.write_all(bytes).await,
                Self::Tls(tls) => {
                    tls.write_all(bytes).await?;
                    tls.flush().await
                }
            }
        };
        written.await.map_err(|error| format!("the request could not be written: {error}"))
    }

    /// Reads some more, within this time; nothing more at the end.
    pub(super) async fn read(
        &mut self,
        into: &mut BytesMut,
        patience: Duration,
    ) -> Option<io::Result<usize>> {
        let reading = async {
            match self {
                Self::Plain(tcp) => tcp.read_buf(into).await,
                Self::Tls(tls) => tls.read_buf(into).await,
            }
        };
        tokio::time::timeout(patience, reading).await.ok()
    }
}
