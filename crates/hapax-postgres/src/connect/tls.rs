//! The encrypted side of a connection, for our own and for pools of others.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{self, ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::{channel_binding, settings::ClientEnvironment, verifier::ServerJudge};

/// What a server that is asked at once, without a question before, expects to hear.
const PROTOCOL: &[u8] = b"postgresql";

/// How much a connection is protected, from nothing upwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum TlsLevel {
    Disable,
    #[default]
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

/// Who vouches for a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TrustAnchors {
    /// Whoever the machine trusts.
    System,
    /// Those in this file.
    File(PathBuf),
}

/// How a connection is encrypted. Files are read when one is made, so that what was renewed is used.
#[derive(Debug, Clone, Default)]
pub(super) struct TlsSettings {
    pub(super) encryption: TlsLevel,
    /// Whether the handshake comes first, without asking whether the server knows it.
    pub(super) direct: bool,
    pub(super) roots: Option<TrustAnchors>,
    pub(super) certificate: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
}

impl TlsSettings {
    /// Adds the files of `~/.postgresql` that are there and were not named otherwise, as libpq does.
    pub(super) fn add_usual_files(&mut self, environment: &ClientEnvironment<'_>) {
        let usual = |name: &str| environment.in_home(".postgresql").map(|dir| dir.join(name));
        let there = |name: &str| usual(name).filter(|path| path.exists());
        if self.roots.is_none() {
            self.roots = there("root.crt").map(TrustAnchors::File);
        }
        if self.certificate.is_none() {
            self.certificate = there("postgresql.crt");
        }
        if self.key.is_none() && self.certificate.is_some() {
            self.key = usual("postgresql.key");
        }
    }

    fn client_config(&self) -> Result<ClientConfig, TlsFailure> {
        let provider = Arc::new(ring::default_provider());
        let judge = self.judge(&provider)?;
        let builder = ClientConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions()?;
        let builder = builder.dangerous().with_custom_certificate_verifier(Arc::new(judge));
        let mut config = match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => {
                let chain = certificates(certificate)?;
                builder.with_client_auth_cert(chain, private_key(key)?)?
            }
            (_, _) => builder.with_no_client_auth(),
        };
        if self.direct {
            config.alpn_protocols = vec![PROTOCOL.to_vec()];
        }
        Ok(config)
    }

    /// As in libpq, whoever is named to vouch for servers is asked, even where nobody insists on it.
    fn judge(&self, provider: &Arc<CryptoProvider>) -> Result<ServerJudge, TlsFailure> {
        let Some(anchors) = &self.roots else {
            return match self.encryption {
                TlsLevel::VerifyCa | TlsLevel::VerifyFull => Err(TlsFailure::NoRoots),
                TlsLevel::Disable | TlsLevel::Prefer | TlsLevel::Require => {
                    Ok(ServerJudge::anybody(Arc::clone(provider)))
                }
            };
        };
        let mut roots = RootCertStore::empty();
        match anchors {
            TrustAnchors::System => {
                roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            }
            TrustAnchors::File(path) => {
                for certificate in certificates(path)? {
                    roots.add(certificate)?;
                }
            }
        }
        let is_named = self.encryption == TlsLevel::VerifyFull;
        Ok(ServerJudge::vouched(Arc::clone(provider), roots, is_named)?)
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFailure> {
    let unreadable = |source| TlsFailure::File { path: path.to_owned(), source };
    let found = CertificateDer::pem_file_iter(path).map_err(unreadable)?;
    let found = found.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    if found.is_empty() { Err(TlsFailure::Empty { path: path.to_owned() }) } else { Ok(found) }
}

/// A key that others may read is refused, as by libpq: it is its owner's, or root's and a group's.
fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFailure> {
    if let Ok(about) = fs::metadata(path) {
        let forbidden = if about.uid() == 0 { 0o037 } else { 0o077 };
        if about.mode() & forbidden != 0 {
            return Err(TlsFailure::KeyIsOpen { path: path.to_owned() });
        }
    }
    let key = PrivateKeyDer::from_pem_file(path);
    key.map_err(|source| TlsFailure::File { path: path.to_owned(), source })
}

/// Why no encrypted connection can be asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsFailure {
    /// Nobody is named to vouch for the server.
    #[error(
        "nobody is named to vouch for the server: write sslrootcert=FILE, or sslrootcert=system for those \
         that this machine trusts"
    )]
    NoRoots,
    /// A file of certificates or a key cannot be read.
    #[error("{} holds no certificate or key in PEM that can be read", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// A file holds no certificate.
    #[error("{} holds no certificate", path.display())]
    Empty {
        /// Which.
        path: PathBuf,
    },
    /// Others may read the private key.
    #[error("others may read the private key {0}: run `chmod 600 {0}`", path.display())]
    KeyIsOpen {
        /// Which.
        path: PathBuf,
    },
    /// The host is no name that a certificate could be for.
    #[error("no certificate can be for `{host}`: connect by a host name or an IP address")]
    Name {
        /// The host.
        host: String,
    },
    /// A connection is to be encrypted although its address says otherwise.
    #[error("the address says sslmode=disable")]
    Disabled,
    /// The certificates do not go together.
    #[error("the certificates cannot be used")]
    Certificates(#[from] rustls::Error),
    /// Those who are to vouch for the server cannot.
    #[error("the certificates in sslrootcert cannot be used")]
    Roots(#[from] rustls::client::VerifierBuilderError),
}

/// The encryption that an address asks for, as the driver and its pools take it.
///
/// Certificates and keys are read when a connection is made: what was renewed is used by the next one.
///
/// ```
/// use hapax_postgres::Address;
///
/// let address: Address = "postgres://app@db.example.com/shop?sslrootcert=system".parse()?;
/// let tls: hapax_postgres::PostgresTls = address.connector()?;
/// # drop(tls);
/// # Ok::<(), hapax_postgres::AddressError>(())
/// ```
#[derive(Debug, Clone)]
pub struct PostgresTls {
    settings: Arc<TlsSettings>,
}

impl PostgresTls {
    pub(super) fn new(settings: TlsSettings) -> Self {
        Self { settings: Arc::new(settings) }
    }

    /// Whether the handshake comes first.
    #[cfg(feature = "tail")]
    pub(crate) fn is_direct(&self) -> bool {
        self.settings.direct
    }
}

impl<S> MakeTlsConnect<S> for PostgresTls
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    type Stream = EncryptedStream<S>;
    type TlsConnect = TlsHandshake;
    type Error = TlsFailure;

    fn make_tls_connect(&mut self, host: &str) -> Result<TlsHandshake, TlsFailure> {
        if self.settings.encryption == TlsLevel::Disable {
            return Ok(TlsHandshake(None));
        }
        let connector = TlsConnector::from(Arc::new(self.settings.client_config()?));
        let name = match ServerName::try_from(host) {
            Ok(name) => name.to_owned(),
            Err(_) if self.settings.encryption == TlsLevel::VerifyFull => {
                return Err(TlsFailure::Name { host: host.to_owned() });
            }
            // An address is told to nobody, and no name is looked for.
            Err(_) => ServerName::from(IpAddr::from(Ipv4Addr::UNSPECIFIED)),
        };
        Ok(TlsHandshake(Some((connector, name))))
    }
}

/// What is said before a connection is encrypted.
pub struct TlsHandshake(Option<(TlsConnector, ServerName<'static>)>);

impl<S> TlsConnect<S> for TlsHandshake
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    type Stream = EncryptedStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<EncryptedStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let (connector, name) = self.0.ok_or_else(|| io::Error::other(TlsFailure::Disabled))?;
            Ok(EncryptedStream(connector.connect(name, stream).await?))
        })
    }
}

impl std::fmt::Debug for TlsHandshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsHandshake").finish_non_exhaustive()
    }
}

/// A connection that nobody in between can read.
#[derive(Debug)]
pub struct EncryptedStream<S>(TlsStream<S>);

impl<S> EncryptedStream<S> {
    /// What ties a password's proof to this connection.
    pub(crate) fn end_point(&self) -> Option<Vec<u8>> {
        let (_, session) = self.0.get_ref();
        channel_binding::end_point(session.peer_certificates()?.first()?)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> tls::TlsStream for EncryptedStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        self.end_point().map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for EncryptedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for EncryptedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
