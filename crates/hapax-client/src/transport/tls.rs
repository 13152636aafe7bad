//! Whom an `https` address is trusted by.

use std::{path::Path, sync::Arc};

use hapax_tower::BoxError;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use super::TransportError;

pub(super) fn config(ca: Option<&Path>) -> Result<ClientConfig, TransportError> {
    let roots = match ca {
        Some(file) => roots_from(file)?,
        None => roots_of_the_system(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(TransportError::Tls)?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn roots_from(file: &Path) -> Result<RootCertStore, TransportError> {
    let unreadable =
        |cause: BoxError| TransportError::Certificates { file: file.to_owned(), cause };
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

/// Without any root a client can still speak to `http` addresses, so it is no failure yet.
fn roots_of_the_system() -> RootCertStore {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        tracing::warn!("this system has no root certificates; no https address can be trusted");
    }
    roots
}
