//! A way to PostgreSQL that counts the statements that go through it.
//!
//! The server's own counts do not tell who asked: transactions of its own work, and those of decoding
//! its log, are among them.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};
use tokio_postgres::{Config, config::Host};

use crate::error::BenchError;

/// Listens until it is dropped.
pub(super) struct Counted {
    config: Config,
    statements: Arc<AtomicU64>,
    listening: JoinHandle<()>,
}

impl Counted {
    /// Another way to the same database; an error if its server is not reached over TCP.
    pub(super) async fn start(config: &Config) -> Result<Self, BenchError> {
        let (Some(Host::Tcp(host)), Some(port)) =
            (config.get_hosts().first(), config.get_ports().first())
        else {
            return Err(BenchError::Uncounted(io::ErrorKind::Unsupported.into()));
        };
        let server = (host.clone(), *port);
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(BenchError::Uncounted)?;
        let address = listener.local_addr().map_err(BenchError::Uncounted)?;
        let statements = Arc::new(AtomicU64::new(0));
        let listening = tokio::spawn(listen(listener, server, Arc::clone(&statements)));
        let mut through = Config::new();
        through.host("127.0.0.1").port(address.port());
        if let Some(user) = config.get_user() {
            through.user(user);
        }
        if let Some(password) = config.get_password() {
            through.password(password);
        }
        if let Some(name) = config.get_dbname() {
            through.dbname(name);
        }
        // What is encrypted cannot be counted.
        through.ssl_mode(tokio_postgres::config::SslMode::Disable);
        Ok(Self { config: through, statements, listening })
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    /// How many statements have gone to the server.
    pub(super) fn statements(&self) -> u64 {
        self.statements.load(Relaxed)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, server: (String, u16), statements: Arc<AtomicU64>) {
    while let Ok((client, _)) = listener.accept().await {
        let (server, statements) = (server.clone(), Arc::clone(&statements));
        tokio::spawn(async move {
            // A connection that breaks ends for both of its ends.
            let _ = pass(client, server, &statements).await;
        });
    }
}

async fn pass(client: TcpStream, server: (String, u16), statements: &AtomicU64) -> io::Result<()> {
    let server = TcpStream::connect(server).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let asked = async {
        // The first message has no kind.
        let mut kind = None;
        loop {
            let length = from_client.read_u32().await?;
            to_server.write_u32(length).await?;
            if matches!(kind, Some(b'Q' | b'E')) {
                statements.fetch_add(1, Relaxed);
            }
            let mut body = (&mut from_client).take(u64::from(length.saturating_sub(4)));
            copy(&mut body, &mut to_server).await?;
            let next = from_client.read_u8().await?;
            to_server.write_u8(next).await?;
            kind = Some(next);
        }
    };
    tokio::select! {
        ended = asked => ended,
        ended = copy(&mut from_server, &mut to_client) => ended.map(|_| ()),
    }
}
