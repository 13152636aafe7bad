//! Stands between an examination and a server, and writes down what came.

use std::{
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
};

use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpSocket,
};
use tokio_rustls::TlsAcceptor;

/// Small, so that it does not take an answer from its server that its client does not take.
const BUFFER_BYTES: u32 = 32 * 1024;

/// What came on one connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct CameIn {
    /// What each reading brought.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// Whether it was reset.
    pub(crate) is_reset: bool,
}

/// A port of this machine whose connections go on to a server.
#[derive(Debug)]
pub(crate) struct Relay {
    pub(crate) address: SocketAddr,
    came_in: Arc<Mutex<Vec<Arc<Mutex<CameIn>>>>>,
}

impl CameIn {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.chunks.concat()
    }
}

impl Relay {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        Self::start(server, None).await
    }

    /// The same with TLS, and the certificate that is to be trusted.
    pub(crate) async fn with_tls(
        server: SocketAddr,
        protocols: &[&str],
    ) -> (Self, CertificateDer<'static>) {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let certificate = made.cert.der().clone();
        let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider);
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        let mut config =
            builder.with_single_cert(vec![certificate.clone()], PrivateKeyDer::from(key)).unwrap();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        (Self::start(server, Some(TlsAcceptor::from(Arc::new(config)))).await, certificate)
    }

    async fn start(server: SocketAddr, tls: Option<TlsAcceptor>) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        // Connections have it from here.
        socket.set_send_buffer_size(BUFFER_BYTES).unwrap();
        socket.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
        let listener = socket.listen(1024).unwrap();
        let address = listener.local_addr().unwrap();
        let came_in = Arc::new(Mutex::new(Vec::new()));
        let all = came_in.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let came_in = Arc::new(Mutex::new(CameIn::default()));
                all.lock().unwrap().push(came_in.clone());
                let tls = tls.clone();
                tokio::spawn(async move {
                    client.set_nodelay(true).unwrap();
                    match tls {
                        None => pass_on(client, server, came_in).await,
                        Some(tls) => match tls.accept(client).await {
                            Ok(client) => pass_on(client, server, came_in).await,
                            Err(refused) => Err(refused),
                        },
                    }
                });
            }
        });
        Self { address, came_in }
    }

    /// What came on each connection, in the order in which they were opened.
    pub(crate) fn came_in(&self) -> Vec<CameIn> {
        self.came_in.lock().unwrap().iter().map(|one| one.lock().unwrap().clone()).collect()
    }
}

/// Passes bytes on in both directions until one side is gone.
async fn pass_on(
    client: impl AsyncRead + AsyncWrite + Send,
    server: SocketAddr,
    came_in: Arc<Mutex<CameIn>>,
) -> io::Result<()> {
    let upstream = TcpSocket::new_v4()?;
    upstream.set_recv_buffer_size(BUFFER_BYTES)?;
    let mut upstream = upstream.connect(server).await?;
    upstream.set_nodelay(true)?;
    let (mut from_server, mut to_server) = upstream.split();
    let (mut from_client, mut to_client) = tokio::io::split(client);
    let forth = async {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let read = from_client.read(&mut buffer).await;
            let bytes = match read {
                Ok(0) => return to_server.shutdown().await,
                Ok(bytes) => &buffer[..bytes],
                Err(error) => {
                    came_in.lock().unwrap().is_reset = true;
                    return Err(error);
                }
            };
            came_in.lock().unwrap().chunks.push(bytes.to_vec());
            to_server.write_all(bytes).await?;
        }
    };
    let back = async {
        tokio::io::copy(&mut from_server, &mut to_client).await?;
        to_client.shutdown().await
    };
    tokio::try_join!(forth, back).map(|_| ())
}
