//! The certificate clients see, and those they have to show.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rustls::{
    RootCertStore, ServerConfig,
    crypto::CryptoProvider,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier},
};

use crate::config::{CertifiedKey, ClientCertificates, Tls};

/// The protocols as TLS names them.
pub(crate) const HTTP2: &[u8] = b"h2";
pub(crate) const HTTP1: &[u8] = b"http/1.1";

/// Reads the certificate, its key, and whose certificates are taken.
pub(crate) fn server_config(tls: &Tls) -> Result<Arc<ServerConfig>, TlsError> {
    let (chain, key) = identity(&tls.identity)?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Unusable)?;
    let config = match &tls.clients {
        Some(clients) => config.with_client_cert_verifier(verifier(clients, provider)?),
        None => config.with_no_client_auth(),
    };
    let mut config = config.with_single_cert(chain, key).map_err(TlsError::Unusable)?;
    if tls.clients.is_some() {
        // A session that goes on shows no certificate again: an expired one would be good for a day.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    Ok(Arc::new(config))
}

/// Reads a chain of certificates and its key.
pub(crate) fn identity(
    files: &CertifiedKey,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(unreadable(&files.key))?;
    Ok((certificates(&files.certificate)?, key))
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(unreadable(file))
}

fn unreadable(file: &Path) -> impl FnOnce(rustls::pki_types::pem::Error) -> TlsError {
    let file = file.to_owned();
    move |cause| TlsError::Unreadable { file, cause }
}

fn verifier(
    clients: &ClientCertificates,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&clients.ca)? {
        roots.add(certificate).map_err(TlsError::Unusable)?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let verifier = if clients.required { verifier } else { verifier.allow_unauthenticated() };
    verifier.build().map_err(|cause| TlsError::NoClientCa { file: clients.ca.clone(), cause })
}

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read as PEM.
    #[error("{} cannot be read as PEM", file.display())]
    Unreadable {
        /// Which file.
        file: PathBuf,
        /// What went wrong.
        #[source]
        cause: rustls::pki_types::pem::Error,
    },
    /// The certificate and the key do not fit, or are not supported.
    #[error("the certificate and its key cannot be used")]
    Unusable(#[source] rustls::Error),
    /// Nobody in the file can sign certificates of clients.
    #[error("{} names nobody who signs certificates of clients", file.display())]
    NoClientCa {
        /// Which file.
        file: PathBuf,
        /// What went wrong.
        #[source]
        cause: rustls::server::VerifierBuilderError,
    },
}
