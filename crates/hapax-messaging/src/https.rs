//! A client for HTTPS whose requests are sent once: nothing is repeated or redirected by itself.

use std::{error::Error, sync::Arc, time::Duration};

use rustls::{ClientConfig, RootCertStore};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) fn client() -> Result<reqwest::Client, Box<dyn Error + Send + Sync>> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .tls_backend_preconfigured(config);
    Ok(builder.build()?)
}
