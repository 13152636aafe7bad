//! A connection, with or without TLS.

use std::{
    io::{self, Write},
    os::fd::AsFd,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{BufMut, Bytes, BytesMut};
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::{TcpSocket, TcpStream, lookup_host},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::WireError;
use crate::HttpAddress;

/// A connection that bytes can be written to and read from. Dropping it says nothing in TLS.
#[derive(Debug)]
pub(super) enum WireStream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// What is agreed on when a connection is opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectOptions<'a> {
    /// What is offered by ALPN, where there is TLS.
    pub(super) protocols: &'a [&'a [u8]],
    /// How much the kernel takes for us before we read; its own choice if nothing is said.
    pub(super) receive_bytes: Option<u32>,
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
        options: ConnectOptions<'_>,
    ) -> io::Result<Self> {
        let tcp = connect_tcp(address, options.receive_bytes).await?;
        // Without it, what is sent in two pieces comes late.
        tcp.set_nodelay(true)?;
        if !address.tls {
            return Ok(Self::Plain(tcp));
        }
        let mut config = ClientConfig::clone(config);
        config.alpn_protocols = options.protocols.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from(address.host.clone()).map_err(io::Error::other)?;
        let connector = TlsConnector::from(Arc::new(config));
        Ok(Self::Tls(Box::new(connector.connect(name, tcp).await?)))
    }

    /// Hands all of it to the kernel; with TLS, as records of its own.
    pub(super) async fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        let written = async {
            self.write_all(bytes).await?;
            self.flush().await
        };
        written.await.map_err(|error| not_written(&error))
    }

    /// Reads some more, within this time; nothing more at the end.
    pub(super) async fn read(
        &mut self,
        into: &mut BytesMut,
        patience: Duration,
    ) -> Option<io::Result<usize>> {
        tokio::time::timeout(patience, self.read_buf(into)).await.ok()
    }

    /// The same, but no more than so many bytes.
    pub(super) async fn read_most(
        &mut self,
        into: &mut BytesMut,
        most: usize,
        patience: Duration,
    ) -> Option<io::Result<usize>> {
        let mut limited = into.limit(most);
        tokio::time::timeout(patience, self.read_buf(&mut limited)).await.ok()
    }

    /// These bytes as they go over TCP, so that nothing but the sending is left to do. Whatever is sealed is sent
    /// before anything else is written.
    pub(super) fn seal(&mut self, bytes: &[u8]) -> Result<Bytes, String> {
        match self {
            Self::Plain(_) => Ok(Bytes::copy_from_slice(bytes)),
            Self::Tls(tls) => {
                let (_, session) = tls.get_mut();
                let mut record = Vec::new();
                let sealing = session.writer().write_all(bytes).and_then(|()| {
                    while session.wants_write() {
                        session.write_tls(&mut record)?;
                    }
                    Ok(())
                });
                sealing.map(|()| record.into()).map_err(|error| not_written(&error))
            }
        }
    }

    /// Hands as much of what was sealed to the kernel as it takes now.
    pub(super) fn try_send(&self, sealed: &[u8]) -> io::Result<usize> {
        self.tcp().try_write(sealed)
    }

    /// Hands all of what was sealed to the kernel.
    pub(super) async fn send(&mut self, sealed: &[u8]) -> Result<(), String> {
        let sent = match self {
            Self::Plain(tcp) => tcp.write_all(sealed).await,
            Self::Tls(tls) => tls.get_mut().0.write_all(sealed).await,
        };
        sent.map_err(|error| not_written(&error))
    }

    /// Says that nothing more comes (FIN), in TCP alone.
    pub(super) async fn finish(&mut self) {
        // Whoever has left before us does not need to hear it.
        let _ = match self {
            Self::Plain(tcp) => tcp.shutdown().await,
            Self::Tls(tls) => tls.get_mut().0.shutdown().await,
        };
    }

    /// Resets the connection (RST).
    pub(super) fn reset(self) {
        // A connection that is gone needs no reset.
        let _ = self.tcp().set_zero_linger();
    }

    /// Another handle of a connection without TLS, which does not block.
    pub(super) fn look(&self) -> Option<std::net::TcpStream> {
        match self {
            Self::Plain(tcp) => Some(tcp.as_fd().try_clone_to_owned().ok()?.into()),
            Self::Tls(_) => None,
        }
    }

    /// What both sides agreed on by ALPN.
    pub(super) fn agreed(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(tls) => tls.get_ref().1.alpn_protocol(),
        }
    }

    /// Our port and theirs.
    pub(super) fn ports(&self) -> Option<(u16, u16)> {
        let tcp = self.tcp();
        Some((tcp.local_addr().ok()?.port(), tcp.peer_addr().ok()?.port()))
    }

    fn tcp(&self) -> &TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_ref().0,
        }
    }
}

async fn connect_tcp(address: &HttpAddress, receive_bytes: Option<u32>) -> io::Result<TcpStream> {
    let Some(receive_bytes) = receive_bytes else {
        return TcpStream::connect((address.host.as_str(), address.port)).await;
    };
    let mut failed = io::Error::other("the name has no address");
    for found in lookup_host((address.host.as_str(), address.port)).await? {
        let socket = if found.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        // The window that the other side hears of in the handshake is made from it.
        socket.set_recv_buffer_size(receive_bytes)?;
        match socket.connect(found).await {
            Ok(tcp) => return Ok(tcp),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

fn not_written(error: &io::Error) -> String {
    format!("the request could not be written: {error}")
}

impl AsyncRead for WireStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_read(context, into),
            Self::Tls(tls) => Pin::new(tls).poll_read(context, into),
        }
    }
}

impl AsyncWrite for WireStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_write(context, bytes),
            Self::Tls(tls) => Pin::new(tls).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_flush(context),
            Self::Tls(tls) => Pin::new(tls).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).poll_shutdown(context),
            Self::Tls(tls) => Pin::new(tls).poll_shutdown(context),
        }
    }
}
