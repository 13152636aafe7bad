//! New connections to the upstream, with and without TLS.

use std::{
    fmt,
    io::{self, IoSlice},
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use hapax_tower::BoxError;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::error::UpstreamClientError;
use crate::{
    config::{Protocol, Upstream},
    server::{HTTP1, HTTP2, identity},
};

/// Makes connections to one host.
pub(crate) struct Connector {
    host: String,
    port: u16,
    tls: Option<TlsEnds>,
    /// Whether HTTP/2 is spoken where TLS does not decide it.
    prior_http2: bool,
}

/// How TLS is spoken to the upstream.
struct TlsEnds {
    usual: TlsConnector,
    /// Where HTTP/1.1 alone will do.
    http1: TlsConnector,
    name: ServerName<'static>,
}

/// A connection, and the protocol both sides agreed on.
pub(crate) struct Connected {
    pub(crate) io: Io,
    pub(crate) http2: bool,
}

impl Connector {
    pub(crate) fn new(upstream: &Upstream) -> Result<Self, UpstreamClientError> {
        let authority = upstream.url.authority().ok_or(UpstreamClientError::NoAuthority)?;
        let host = authority.host().trim_matches(['[', ']']).to_owned();
        let scheme = upstream.url.scheme_str().unwrap_or_default();
        let (default_port, tls) = match scheme {
            "http" => (80, None),
            "https" => {
                let name = ServerName::try_from(host.clone())
                    .map_err(|_| UpstreamClientError::NoAuthority)?;
                let usual = client_config(upstream)?;
                let mut http1 = usual.clone();
                http1.alpn_protocols = vec![HTTP1.to_vec()];
                let [usual, http1] = [usual, http1].map(|one| TlsConnector::from(Arc::new(one)));
                (443, Some(TlsEnds { usual, http1, name }))
            }
            other => return Err(UpstreamClientError::Scheme { scheme: other.to_owned() }),
        };
        let port = authority.port_u16().unwrap_or(default_port);
        Ok(Self { host, port, tls, prior_http2: upstream.protocol == Protocol::Http2 })
    }

    /// Whether every connection of this connector speaks HTTP/2.
    pub(crate) fn is_http2(&self) -> bool {
        self.prior_http2
    }

    pub(crate) async fn connect(&self) -> Result<Connected, BoxError> {
        let tcp = self.tcp().await?;
        let Some(TlsEnds { usual, name, .. }) = &self.tls else {
            return Ok(Connected { io: Io::Plain(tcp), http2: self.prior_http2 });
        };
        let stream = usual.connect(name.clone(), tcp).await?;
        let http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
        if self.prior_http2 && !http2 {
            return Err("the upstream does not offer HTTP/2".into());
        }
        Ok(Connected { io: Io::Tls(Box::new(stream)), http2 })
    }

    /// A connection that speaks HTTP/1.1, whatever others do.
    pub(crate) async fn connect_http1(&self) -> Result<Io, BoxError> {
        let tcp = self.tcp().await?;
        let Some(TlsEnds { http1, name, .. }) = &self.tls else { return Ok(Io::Plain(tcp)) };
        Ok(Io::Tls(Box::new(http1.connect(name.clone(), tcp).await?)))
    }

    async fn tcp(&self) -> Result<TcpStream, BoxError> {
        let tcp = TcpStream::connect((self.host.as_str(), self.port)).await?;
        tcp.set_nodelay(true)?;
        Ok(tcp)
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connector({}:{})", self.host, self.port)
    }
}

fn client_config(upstream: &Upstream) -> Result<ClientConfig, UpstreamClientError> {
    let roots = match &upstream.ca {
        Some(file) => roots_from(file)?,
        None => roots_of_the_system()?,
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let unusable = |error: rustls::Error| UpstreamClientError::Certificates {
        from: "the TLS library".to_owned(),
        cause: error.into(),
    };
    let config = config.map_err(unusable)?.with_root_certificates(roots);
    let mut config = match &upstream.identity {
        Some(files) => {
            let refused = |cause: BoxError| UpstreamClientError::Identity {
                from: files.certificate.display().to_string(),
                cause,
            };
            let (chain, key) = identity(files).map_err(|error| refused(error.into()))?;
            config.with_client_auth_cert(chain, key).map_err(|error| refused(error.into()))?
        }
        None => config.with_no_client_auth(),
    };
    config.alpn_protocols = match upstream.protocol {
        Protocol::Automatic => vec![HTTP2.to_vec(), HTTP1.to_vec()],
        Protocol::Http1 => vec![HTTP1.to_vec()],
        Protocol::Http2 => vec![HTTP2.to_vec()],
    };
    Ok(config)
}

fn roots_from(file: &Path) -> Result<RootCertStore, UpstreamClientError> {
    let unreadable = |cause: BoxError| UpstreamClientError::Certificates {
        from: file.display().to_string(),
        cause,
    };
    let mut roots = RootCertStore::empty();
    let found = CertificateDer::pem_file_iter(file).map_err(|error| unreadable(error.into()))?;
    for certificate in found {
        let certificate = certificate.map_err(|error| unreadable(error.into()))?;
        roots.add(certificate).map_err(|error| unreadable(error.into()))?;
    }
    if roots.is_empty() {
        return Err(unreadable("there is no certificate in it".into()));
    }
    Ok(roots)
}

fn roots_of_the_system() -> Result<RootCertStore, UpstreamClientError> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let cause = found.errors.into_iter().next();
        let cause = cause.map_or_else(|| "there are none".into(), BoxError::from);
        return Err(UpstreamClientError::Certificates { from: "the system".to_owned(), cause });
    }
    Ok(roots)
}

/// A connection to the upstream.
pub(crate) enum Io {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Io {
    /// Ready when there may be something to read, so that no buffer is needed before.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Plain(io) => io.poll_read_ready(cx),
            Self::Tls(_) => Poll::Ready(Ok(())),
        }
    }
}

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_read(cx, buf),
            Self::Tls(io) => Pin::new(io).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write(cx, buf),
            Self::Tls(io) => Pin::new(io).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_write_vectored(cx, bufs),
            Self::Tls(io) => Pin::new(io).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(io) => io.is_write_vectored(),
            Self::Tls(io) => io.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_flush(cx),
            Self::Tls(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(io) => Pin::new(io).poll_shutdown(cx),
            Self::Tls(io) => Pin::new(io).poll_shutdown(cx),
        }
    }
}
