//! What `sslmode` means, on servers of every kind.

use hapax_postgres::ConnectFailure;
use hapax_services::{
    certificates::Authority,
    postgres::{Server, Settings},
};

use super::{SecuredServer, Way, allow, port, refusal, way};

/// What a mode comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Came(Way),
    Distrusted,
    NoTls,
}

const ENCRYPTED: Outcome = Outcome::Came(Way::Encrypted);
const PLAIN: Outcome = Outcome::Came(Way::Plain);

async fn outcome(address: &str) -> Outcome {
    match way(address).await {
        Ok(way) => Outcome::Came(way),
        Err(ConnectFailure::Certificate { .. }) => Outcome::Distrusted,
        Err(ConnectFailure::NoTls { .. }) => Outcome::NoTls,
        Err(failure) => panic!("{address}: {failure:?}"),
    }
}

#[tokio::test]
async fn every_mode_does_with_every_server_as_libpq_does() {
    let secured = SecuredServer::shared();
    let plain = Server::start(Settings::default()).unwrap();
    let stranger = Authority::new("a stranger").unwrap();
    let (ours, strange) =
        (secured.path("authority.crt"), secured.write("strange.crt", stranger.certificate()));
    let (ours, strange) = (ours.display(), strange.display());
    let (port, plain_port) = (secured.port(), port(&plain));
    let address = |host: &str, port: u16, parameters: &str| {
        format!("postgres://postgres@{host}:{port}/postgres?{parameters}")
    };
    // On the server it is for, by a name it is not for, from an authority nobody has named, without TLS.
    let table = [
        ("disable", [PLAIN, PLAIN, PLAIN, PLAIN]),
        ("prefer", [ENCRYPTED, ENCRYPTED, PLAIN, PLAIN]),
        ("require", [ENCRYPTED, ENCRYPTED, Outcome::Distrusted, Outcome::NoTls]),
        ("verify-ca", [ENCRYPTED, ENCRYPTED, Outcome::Distrusted, Outcome::NoTls]),
        ("verify-full", [ENCRYPTED, Outcome::Distrusted, Outcome::Distrusted, Outcome::NoTls]),
    ];
    for (mode, expected) in table {
        let (trusting, wary) = (
            format!("sslmode={mode}&sslrootcert={ours}"),
            format!("sslmode={mode}&sslrootcert={strange}"),
        );
        let servers = [
            address("localhost", port, &trusting),
            address("127.0.0.1", port, &trusting),
            address("localhost", port, &wary),
            address("localhost", plain_port, &trusting),
        ];
        for (server, expected) in servers.iter().zip(expected) {
            assert_eq!(outcome(server).await, expected, "{server}");
        }
    }
    // Without anybody to vouch for servers.
    for (mode, expected) in [("prefer", ENCRYPTED), ("require", ENCRYPTED)] {
        let server = address("localhost", port, &format!("sslmode={mode}"));
        assert_eq!(outcome(&server).await, expected, "{server}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_trusted_is_told_with_what_to_do() {
    let secured = SecuredServer::shared();
    let stranger = Authority::new("a stranger").unwrap();
    let strange = secured.write("other.crt", stranger.certificate());
    let (port, strange) = (secured.port(), strange.display());
    let unknown = format!(
        "postgres://postgres@localhost:{port}/postgres?sslmode=verify-full&sslrootcert={strange}"
    );
    let told = refusal(&unknown).await;
    assert!(told.contains("have sslrootcert name the CA that signed it"), "{told}");
    let elsewhere =
        secured.address("postgres", "sslmode=verify-full").replace("localhost", "127.0.0.1");
    let told = refusal(&elsewhere).await;
    assert!(told.contains("connect by a name that it is for"), "{told}");
    for mode in ["verify-ca", "verify-full"] {
        let nobody = format!("postgres://postgres@localhost:{port}/postgres?sslmode={mode}");
        let told = refusal(&nobody).await;
        assert!(told.contains("write sslrootcert=FILE, or sslrootcert=system"), "{told}");
    }
    let gone = format!(
        "postgres://postgres@localhost:{port}/postgres?sslmode=verify-ca&sslrootcert={strange}.gone"
    );
    let told = refusal(&gone).await;
    assert!(told.contains("other.crt.gone holds no certificate or key in PEM"), "{told}");
}

#[tokio::test]
async fn a_client_is_known_by_its_certificate() {
    let secured = SecuredServer::shared();
    secured.role("carol", "with_certificate", "").await;
    let own = secured.certified("carol");
    let address =
        |parameters: &str| secured.address("carol", &format!("sslmode=verify-full&{parameters}"));
    assert_eq!(way(&address(&own)).await.unwrap(), Way::Encrypted);
    let told = refusal(&address("")).await;
    assert!(told.contains("connection requires a valid client certificate"), "{told}");
    let told = refusal(&address(&secured.certified("mallory"))).await;
    assert!(told.contains("certificate authentication failed for user \"carol\""), "{told}");
    let key = secured.path("carol.key");
    allow(&key, 0o644);
    let told = refusal(&address(&own)).await;
    assert!(told.contains(&format!("run `chmod 600 {}`", key.display())), "{told}");
}

#[tokio::test]
async fn a_password_is_proved_on_the_connection_it_is_for() {
    let secured = SecuredServer::shared();
    secured.role("bound", "with_password", "PASSWORD 'p'").await;
    for parameters in [
        "sslmode=verify-full&channel_binding=require",
        "sslmode=require&channel_binding=require",
        "sslmode=verify-full&channel_binding=disable",
    ] {
        let address = secured.address("bound:p", parameters);
        assert_eq!(way(&address).await.unwrap(), Way::Encrypted, "{parameters}");
    }
    // Whoever asks for no proof might be anybody.
    let told =
        refusal(&secured.address("postgres", "sslmode=require&channel_binding=require")).await;
    assert!(told.contains("server did not use channel binding"), "{told}");
    let told =
        refusal(&secured.address("bound:p", "sslmode=disable&channel_binding=require")).await;
    assert!(told.contains("channel_binding=require needs an encrypted connection"), "{told}");
}

#[tokio::test]
async fn whoever_stands_between_is_not_proved_a_password() {
    let secured = SecuredServer::shared();
    secured.role("careful", "with_password", "PASSWORD 'p'").await;
    let between = between::start(secured.port()).await;
    let address = |binding: &str| {
        format!(
            "postgres://careful:p@localhost:{between}/postgres?sslmode=require&channel_binding={binding}"
        )
    };
    // It hears everything, and says what the server says.
    assert_eq!(way(&address("disable")).await.unwrap(), Way::Encrypted);
    for binding in ["prefer", "require"] {
        let told = refusal(&address(binding)).await;
        assert!(told.contains("channel binding"), "{binding}: {told}");
    }
}

/// Somebody with a certificate of their own, who decrypts, looks, and hands on.
mod between {
    use std::sync::Arc;

    use hapax_services::certificates::Authority;
    use rustls::{
        ServerConfig,
        pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    };
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional},
        net::{TcpListener, TcpStream},
    };
    use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
    use tokio_rustls::TlsAcceptor;

    const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 4, 210, 22, 47];

    pub(super) async fn start(behind: u16) -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let own = Authority::new("between").unwrap().server(&["localhost"]).unwrap();
        let certificate = CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(hand_on(stream, acceptor.clone(), behind));
            }
        });
        port
    }

    async fn hand_on(mut client: TcpStream, acceptor: TlsAcceptor, behind: u16) {
        let mut asked = [0; 8];
        client.read_exact(&mut asked).await.unwrap();
        assert_eq!(asked, SSL_REQUEST);
        client.write_all(b"S").await.unwrap();
        let mut client = acceptor.accept(client).await.unwrap();
        let mut server = TcpStream::connect(("127.0.0.1", behind)).await.unwrap();
        server.write_all(&SSL_REQUEST).await.unwrap();
        assert_eq!(server.read_u8().await.unwrap(), b'S');
        let address = "postgres://localhost/postgres?sslmode=require";
        let mut tls = address.parse::<hapax_postgres::Address>().unwrap().connector().unwrap();
        let handshake =
            MakeTlsConnect::<TcpStream>::make_tls_connect(&mut tls, "localhost").unwrap();
        let mut server = handshake.connect(server).await.unwrap();
        // Either side hangs up when it is done.
        let _ = copy_bidirectional(&mut client, &mut server).await;
    }
}
