use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    time::sleep,
};

/// A way to the server that breaks at the next `COMMIT`, once.
#[derive(Debug)]
pub struct Proxy {
    /// Where clients connect.
    pub address: SocketAddr,
    next: Arc<AtomicU8>,
}

/// Where a connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// Before the server hears of the commit.
    Before = 1,
    /// When it has committed, before the client hears of that.
    Behind = 2,
}

/// How long the server is given to commit.
const COMMITTING: Duration = Duration::from_millis(200);

impl Proxy {
    /// Listens on loopback, in front of this server.
    pub async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let next = Arc::new(AtomicU8::new(0));
        let shared = Arc::clone(&next);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, server, Arc::clone(&shared)));
            }
        });
        Self { address, next }
    }

    /// Breaks the connection that commits next.
    pub fn cut(&self, cut: Cut) {
        self.next.store(cut as u8, Ordering::SeqCst);
    }

    /// Whether a connection was broken since.
    pub fn was_cut(&self) -> bool {
        self.next.load(Ordering::SeqCst) == 0
    }
}

async fn pass(client: TcpStream, server: SocketAddr, next: Arc<AtomicU8>) {
    let Ok(server) = TcpStream::connect(server).await else { return };
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let back = tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_server, &mut to_client).await;
    });
    let mut bytes = vec![0; 1 << 16];
    while let Ok(len @ 1..) = from_client.read(&mut bytes).await {
        let commits = bytes[..len].windows(6).any(|window| window.eq_ignore_ascii_case(b"commit"));
        let cut = if commits { next.swap(0, Ordering::SeqCst) } else { 0 };
        if cut == Cut::Before as u8 {
            break;
        }
        if cut == Cut::Behind as u8 {
            back.abort();
            let _ = to_server.write_all(&bytes[..len]).await;
            sleep(COMMITTING).await;
            return;
        }
        if to_server.write_all(&bytes[..len]).await.is_err() {
            break;
        }
    }
    back.abort();
}
