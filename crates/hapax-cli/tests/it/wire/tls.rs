//! TLS to clients, TLS and HTTP/2 to the upstream.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rcgen::CertifiedKey;
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{
    http2,
    world::{Behaviour, Gateway, PATIENCE, Setup, Upstream, ask, post, until},
};

const TLS: &str = "[tls]\ncertificate = \"certificate.pem\"\nkey = \"key.pem\"\n";

/// A certificate of its own for `localhost`.
pub(crate) struct Identity {
    certificate: String,
    key: String,
}

impl Identity {
    pub(crate) fn new() -> Self {
        let CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        Self { certificate: cert.pem(), key: signing_key.serialize_pem() }
    }

    fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()
    }

    /// For a server that offers these protocols.
    fn server(&self, protocols: &[&[u8]]) -> Arc<ServerConfig> {
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(provider());
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config = config.with_single_cert(vec![self.der()], key).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    }

    /// A connection to whoever has this certificate, with one of these protocols.
    pub(crate) async fn connect(
        &self,
        to: SocketAddr,
        protocols: &[&[u8]],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = RootCertStore::empty();
        roots.add(self.der()).unwrap();
        let config = ClientConfig::builder_with_provider(provider());
        let config = config.with_safe_default_protocol_versions().unwrap();
        let mut config = config.with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let name = ServerName::try_from("localhost").unwrap();
        let tcp = TcpStream::connect(to).await.unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, tcp).await
    }
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

pub(crate) async fn secured(upstream: &Upstream, identity: &Identity) -> Gateway {
    secured_at(upstream.address, identity).await
}

pub(crate) async fn secured_at(upstream: SocketAddr, identity: &Identity) -> Gateway {
    let setup = Setup::new(upstream).config(TLS);
    let setup = setup.file("certificate.pem", &identity.certificate);
    setup.file("key.pem", &identity.key).start().await
}

#[tokio::test]
async fn clients_choose_between_both_protocols_by_alpn() {
    let (upstream, identity) = (Upstream::start(Behaviour::default()).await, Identity::new());
    let gateway = secured(&upstream, &identity).await;
    let newer = identity.connect(gateway.address, &[b"h2", b"http/1.1"]).await.unwrap();
    assert_eq!(newer.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let request = http2::post("/pay").header("idempotency-key", "k");
    let first = http2::Client::over(newer).await.ask(request, "ten").await.unwrap();
    assert_eq!((first.status, first.text()), (201, "receipt 1 for ten"));
    let older = identity.connect(gateway.address, &[b"http/1.1"]).await.unwrap();
    assert_eq!(older.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let (mut sender, connection) = http1::handshake(TokioIo::new(older)).await.unwrap();
    tokio::spawn(connection);
    let request = http::Request::post("/pay").header("host", "localhost");
    let request = request.header("authorization", "alice").header("idempotency-key", "k");
    let again =
        sender.send_request(request.body(Full::<Bytes>::from("ten")).unwrap()).await.unwrap();
    assert_eq!(again.headers()["idempotent-replayed"], "true");
    assert_eq!(again.into_body().collect().await.unwrap().to_bytes(), first.body);
    assert!(upstream.heads()[0].contains("\"x-forwarded-proto\": \"https\""));
    assert!(ask(gateway.address, post("/pay", "k", "ten")).await.is_none(), "without TLS");
}

/// What a connection that agreed on this protocol is answered when it begins with these bytes.
async fn spoken(identity: &Identity, gateway: &Gateway, agreed: &[u8], bytes: &[u8]) -> Vec<u8> {
    let mut connection = identity.connect(gateway.address, &[agreed]).await.unwrap();
    connection.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    // A connection that is given up may end without a word.
    let _ = timeout(PATIENCE, connection.read_to_end(&mut answer)).await.unwrap();
    answer
}

#[tokio::test]
async fn what_was_agreed_on_by_alpn_is_spoken_and_nothing_else() {
    let (upstream, identity) = (Upstream::start(Behaviour::default()).await, Identity::new());
    let gateway = secured(&upstream, &identity).await;
    let older = b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let newer = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let answer = spoken(&identity, &gateway, b"h2", older).await;
    assert!(!answer.starts_with(b"HTTP/1"), "{}", answer.escape_ascii());
    let answer = spoken(&identity, &gateway, b"http/1.1", newer).await;
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{}", answer.escape_ascii());
    assert!(upstream.heads().is_empty());
    let answer = spoken(&identity, &gateway, b"http/1.1", older).await;
    assert!(answer.starts_with(b"HTTP/1.1 404"), "{}", answer.escape_ascii());
}

#[tokio::test]
async fn a_new_certificate_counts_for_new_connections_after_a_reload() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let (old, new) = (Identity::new(), Identity::new());
    let gateway = secured(&upstream, &old).await;
    let mut open = http2::Client::over(old.connect(gateway.address, &[b"h2"]).await.unwrap()).await;
    gateway.write("certificate.pem", &new.certificate);
    gateway.write("key.pem", &new.key);
    gateway.signal("HUP");
    until("the reload", async || gateway.log().contains("hapax: reloaded")).await;
    assert!(old.connect(gateway.address, &[b"h2"]).await.is_err());
    let mut fresh =
        http2::Client::over(new.connect(gateway.address, &[b"h2"]).await.unwrap()).await;
    for client in [&mut open, &mut fresh] {
        let request = http2::post("/pay").header("idempotency-key", "k");
        assert_eq!(client.ask(request, "ten").await.unwrap().status, 201);
    }
    gateway.write("key.pem", &old.key);
    gateway.signal("HUP");
    until("the refusal", async || gateway.log().contains("not reloaded")).await;
    assert!(new.connect(gateway.address, &[b"h2"]).await.is_ok(), "a pair that does not fit");
}

#[tokio::test]
async fn the_upstream_may_speak_http2_without_tls() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let config = "[upstream]\nprotocol = \"http2\"\n";
    let gateway = Setup::new(upstream.address).config(config).start().await;
    for replayed in [false, true] {
        let answer = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
        assert_eq!((answer.status, answer.is_replay()), (201, replayed));
    }
    let [head] = &upstream.heads()[..] else { panic!("one request") };
    assert!(head.ends_with("HTTP/2.0") && head.contains("\"hapax-fence\": \"1\""), "{head}");
}

#[tokio::test]
async fn the_upstream_is_believed_only_with_a_certificate_that_is_trusted() {
    let (trusted, other) = (Identity::new(), Identity::new());
    for (name, protocols, spoken) in [
        ("HTTP/2", &[&b"h2"[..], b"http/1.1"][..], "HTTP/2.0"),
        ("HTTP/1.1", &[&b"http/1.1"[..]], "HTTP/1.1"),
    ] {
        let server = trusted.server(protocols);
        let upstream = Upstream::start_secured(Behaviour::default(), server).await;
        let url = format!("https://localhost:{}", upstream.address.port());
        let setup = || Setup::new(upstream.address).upstream(url.clone());
        let config = "[upstream]\nca = \"ca.pem\"\n";
        let setup_with = |ca: &Identity| setup().config(config).file("ca.pem", &ca.certificate);
        let gateway = setup_with(&trusted).start().await;
        let answer = ask(gateway.address, post("/pay", "k", "ten")).await.unwrap();
        assert_eq!((answer.status, answer.text()), (201, "receipt 1 for ten"), "{name}");
        assert!(upstream.heads()[0].ends_with(spoken), "{name}: {:?}", upstream.heads());
        let wary = setup_with(&other).start().await;
        let answer = ask(wary.address, post("/pay", "k", "ten")).await.unwrap();
        let code = answer.code();
        assert_eq!(
            (answer.status, code.as_deref()),
            (503, Some("execution-not-started")),
            "{name}"
        );
        assert_eq!(upstream.total(), 1, "{name}");
    }
}
