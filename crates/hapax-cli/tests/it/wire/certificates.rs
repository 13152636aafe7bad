//! Certificates of clients, and the gateway's own towards the upstream.

use std::{io, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, SanType, date_time_ymd,
};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
    server::WebPkiClientVerifier,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::world::{Behaviour, Gateway, Setup, Upstream, ask, post, until};

/// Who signs certificates.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM.
#[derive(Clone)]
struct Signed {
    certificate: String,
    key: String,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, names: Vec<SanType>, until_year: i32) -> Signed {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = names;
        params.not_after = date_time_ymd(until_year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap().pem();
        Signed { certificate, key: key.serialize_pem() }
    }

    fn server(&self) -> Signed {
        self.sign(vec![dns("localhost")], 2999)
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        roots
    }
}

impl Signed {
    fn chain(&self) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let certificate = CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap();
        (vec![certificate], PrivateKeyDer::from_pem_slice(self.key.as_bytes()).unwrap())
    }
}

fn uri(text: &str) -> SanType {
    SanType::URI(text.try_into().unwrap())
}

fn dns(text: &str) -> SanType {
    SanType::DnsName(text.try_into().unwrap())
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// One request under key `k` by a client that shows this, over a connection of its own.
async fn pay(
    to: SocketAddr,
    authority: &Authority,
    shown: Option<&Signed>,
) -> io::Result<Response<Bytes>> {
    let config = ClientConfig::builder_with_provider(provider());
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(authority.roots());
    let config = match shown {
        Some(shown) => {
            let (chain, key) = shown.chain();
            config.with_client_auth_cert(chain, key).unwrap()
        }
        None => config.with_no_client_auth(),
    };
    let name = ServerName::try_from("localhost").unwrap();
    let tcp = TcpStream::connect(to).await?;
    let stream = TlsConnector::from(Arc::new(config)).connect(name, tcp).await?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    let request = http::Request::post("/pay").header("host", "localhost");
    let request = request.header("idempotency-key", "k").body(Full::<Bytes>::from("ten")).unwrap();
    let (parts, body) = sender.send_request(request).await.map_err(io::Error::other)?.into_parts();
    let body = body.collect().await.map_err(io::Error::other)?.to_bytes();
    Ok(Response::from_parts(parts, body))
}

async fn gateway(upstream: &Upstream, ca: &Authority, tls: &str, tenant: &str) -> Gateway {
    let config = format!(
        "[tls]\ncertificate = \"certificate.pem\"\nkey = \"key.pem\"\nclient_ca = \"ca.pem\"\n{tls}\n\
         [tenant]\n{tenant}\n"
    );
    let own = ca.server();
    let setup = Setup::new(upstream.address).config(&config).file("ca.pem", &ca.0.pem());
    setup.file("certificate.pem", &own.certificate).file("key.pem", &own.key).start().await
}

#[tokio::test]
async fn only_a_certificate_that_is_signed_and_in_time_gets_in() {
    let (upstream, ca) = (Upstream::start(Behaviour::default()).await, Authority::new());
    let gateway = gateway(&upstream, &ca, "", "from = \"certificate\"").await;
    let spiffe = || vec![uri("spiffe://shop/alice")];
    let good = ca.sign(spiffe(), 2999);
    let expired = ca.sign(spiffe(), 2020);
    let foreign = Authority::new().sign(spiffe(), 2999);
    for (name, shown) in [("none", None), ("expired", Some(&expired)), ("foreign", Some(&foreign))]
    {
        let refused = pay(gateway.address, &ca, shown).await;
        assert!(refused.is_err(), "{name}: {refused:?}");
    }
    assert_eq!(upstream.heads().len(), 0);
    for replayed in [false, true] {
        let answer = pay(gateway.address, &ca, Some(&good)).await.unwrap();
        assert_eq!(answer.status(), 201);
        assert_eq!(answer.headers().contains_key("idempotent-replayed"), replayed);
    }
    assert!(ask(gateway.address, post("/pay", "k", "ten")).await.is_none(), "without TLS");
    let listed = crate::hapax(&["keys", "list", "--store", &gateway.store]);
    let listed = crate::text(&listed.stdout);
    assert!(listed.contains("certificate:spiffe://shop/alice"), "{listed}");
}

#[tokio::test]
async fn a_tenant_is_the_one_name_of_its_kind_in_the_certificate() {
    let (upstream, ca) = (Upstream::start(Behaviour::default()).await, Authority::new());
    let tls = "client_certificates = \"optional\"";
    let by_host = gateway(&upstream, &ca, tls, "from = \"certificate\"\nsan = \"dns\"").await;
    let by_uri = gateway(&upstream, &ca, tls, "from = \"certificate\"").await;
    let host = ca.sign(vec![dns("Alice.shop.example")], 2999);
    let two = ca.sign(vec![dns("a.example"), dns("b.example")], 2999);
    let both = ca.sign(vec![dns("alice.shop.example"), uri("spiffe://shop/alice")], 2999);
    let expected = [
        ("a name of a host", Some(&host), 201, 401),
        ("two names of hosts", Some(&two), 401, 401),
        ("one of each", Some(&both), 201, 201),
        ("nothing", None, 401, 401),
    ];
    for (name, shown, with_host, with_uri) in expected {
        for (gateway, status) in [(&by_host, with_host), (&by_uri, with_uri)] {
            let answer = pay(gateway.address, &ca, shown).await.unwrap();
            assert_eq!(answer.status(), status, "{name}: {:?}", answer.body());
            if status == 401 {
                assert_eq!(answer.headers()["www-authenticate"], "Certificate");
            }
        }
    }
    assert_eq!(
        upstream.effects("k"),
        2,
        "the host's name is the same tenant, however it is written"
    );
}

#[tokio::test]
async fn who_signs_is_read_again_on_a_reload() {
    let upstream = Upstream::start(Behaviour::default()).await;
    let (ca, next) = (Authority::new(), Authority::new());
    let gateway = gateway(&upstream, &ca, "", "from = \"certificate\"").await;
    let names = || vec![uri("spiffe://shop/alice")];
    let (old, new) = (ca.sign(names(), 2999), next.sign(names(), 2999));
    assert!(pay(gateway.address, &ca, Some(&old)).await.is_ok());
    assert!(pay(gateway.address, &ca, Some(&new)).await.is_err());
    gateway.write("ca.pem", &next.0.pem());
    gateway.signal("HUP");
    until("the reload", async || gateway.log().contains("hapax: reloaded")).await;
    assert!(pay(gateway.address, &ca, Some(&old)).await.is_err());
    let answer = pay(gateway.address, &ca, Some(&new)).await.unwrap();
    assert_eq!(answer.headers()["idempotent-replayed"], "true", "it is the same tenant");
}

#[tokio::test]
async fn the_upstream_is_shown_the_certificate_it_asks_for() {
    let ca = Authority::new();
    let roots = Arc::new(ca.roots());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider()).build().unwrap();
    let server = ServerConfig::builder_with_provider(provider());
    let server = server.with_safe_default_protocol_versions().unwrap();
    let (chain, key) = ca.server().chain();
    let server = server.with_client_cert_verifier(verifier).with_single_cert(chain, key).unwrap();
    let upstream = Upstream::start_secured(Behaviour::default(), Arc::new(server)).await;
    let names = || vec![dns("gateway")];
    let (good, expired) = (ca.sign(names(), 2999), ca.sign(names(), 2020));
    let url = format!("https://localhost:{}", upstream.address.port());
    let shown = "[upstream]\nca = \"ca.pem\"\ncertificate = \"own.pem\"\nkey = \"own.key\"\n";
    let start = async |config: &str, own: &Signed| {
        let setup = Setup::new(upstream.address).upstream(url.clone()).config(config);
        let setup = setup.file("ca.pem", &ca.0.pem()).file("own.pem", &own.certificate);
        setup.file("own.key", &own.key).start().await
    };
    let known = start(shown, &good).await;
    let answer = ask(known.address, post("/pay", "k", "ten")).await.unwrap();
    assert_eq!((answer.status, answer.text()), (201, "receipt 1 for ten"));
    let nobody = start("[upstream]\nca = \"ca.pem\"\n", &good).await;
    let late = start(shown, &expired).await;
    for (name, gateway) in [("nothing", &nobody), ("expired", &late)] {
        let answer = ask(gateway.address, post("/pay", "other", "ten")).await.unwrap();
        assert!(answer.status >= 500, "{name}: {answer:?}");
    }
    assert_eq!(upstream.total(), 1);
    late.write("own.pem", &good.certificate);
    late.write("own.key", &good.key);
    late.signal("HUP");
    until("the reload", async || late.log().contains("hapax: reloaded")).await;
    let answer = ask(late.address, post("/pay", "k2", "ten")).await.unwrap();
    assert_eq!(answer.status, 201, "{answer:?}");
}
