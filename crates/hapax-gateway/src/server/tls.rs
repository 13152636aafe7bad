//! The certificate clients see.

use std::{path::PathBuf, sync::Arc};

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

use crate::config::Tls;

/// The protocols as TLS names them.
pub(super) const HTTP2: &[u8] = b"h2";
pub(super) const HTTP1: &[u8] = b"http/1.1";

/// Reads the certificate and its key.
pub(crate) fn server_config(tls: &Tls) -> Result<Arc<ServerConfig>, TlsError> {
    let unreadable = |file: &PathBuf| {
        let file = file.clone();
        move |cause| TlsError::Unreadable { file, cause }
    };
    let chain = CertificateDer::pem_file_iter(&tls.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(unreadable(&tls.certificate))?;
    let key = PrivateKeyDer::from_pem_file(&tls.key).map_err(unreadable(&tls.key))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(TlsError::Unusable)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(TlsError::Unusable)?;
    config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
    Ok(Arc::new(config))
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
}
