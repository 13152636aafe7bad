use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::timeout,
};

/// A way to the server that breaks or stands still once, at a point of an operation.
#[derive(Debug)]
pub struct Proxy {
    /// Where clients connect.
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

/// Where a connection is, in the operation that it was the first to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KillPoint {
    /// The client has sent a statement with this in it, and the server has not heard of it.
    Before(&'static str),
    /// The server has committed, and the client has not heard of it.
    Committed,
}

#[derive(Debug, Clone, Copy)]
enum Breakage {
    Breaks,
    StandsStill,
}

#[derive(Debug, Default)]
struct Shared {
    next: Mutex<Option<(KillPoint, Breakage)>>,
    reached: Notify,
}

/// How long a client may take to get to a point.
const PATIENCE: Duration = Duration::from_secs(120);

/// What begins an operation.
const BEGIN: &str = "hapax.begin";

/// What the server says of a commit.
const COMMITTED: &[u8] = b"COMMIT\0";

impl Proxy {
    /// Listens on loopback, in front of this server.
    pub async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared::default());
        let passing = Arc::clone(&shared);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, server, Arc::clone(&passing)));
            }
        });
        Self { address, shared }
    }

    /// Breaks the connection that gets to this point next.
    pub fn cut(&self, point: KillPoint) {
        self.plan(Some((point, Breakage::Breaks)));
    }

    /// Lets the connection that gets to this point next stand still until its client is gone.
    pub fn hold(&self, point: KillPoint) {
        self.plan(Some((point, Breakage::StandsStill)));
    }

    fn plan(&self, next: Option<(KillPoint, Breakage)>) {
        *self.shared.next.lock().expect("nobody panics with it") = next;
    }

    /// Waits until a connection got there.
    pub async fn until_reached(&self) {
        timeout(PATIENCE, self.shared.reached.notified()).await.expect("a client gets there");
    }

    /// Whether a connection got there since.
    pub fn was_reached(&self) -> bool {
        self.shared.next.lock().expect("nobody panics with it").is_none()
    }
}

impl Shared {
    /// What becomes of a connection that is here now.
    fn fate(&self, is_here: impl FnOnce(KillPoint) -> bool) -> Option<Breakage> {
        let mut next = self.next.lock().expect("nobody panics with it");
        let (point, fate) = (*next)?;
        if !is_here(point) {
            return None;
        }
        *next = None;
        self.reached.notify_one();
        Some(fate)
    }
}

async fn pass(mut client: TcpStream, server: SocketAddr, shared: Arc<Shared>) {
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    let (mut sent, mut said) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let mut has_begun = false;
    let fate = loop {
        tokio::select! {
            len = client.read(&mut sent) => {
                let Ok(len @ 1..) = len else { return };
                let bytes = &sent[..len];
                has_begun = has_begun || has(bytes, BEGIN.as_bytes());
                let is_here = |point| match point {
                    KillPoint::Before(text) => has_begun && has(bytes, text.as_bytes()),
                    KillPoint::Committed => false,
                };
                if let Some(fate) = shared.fate(is_here) {
                    break fate;
                }
                if server.write_all(bytes).await.is_err() {
                    return;
                }
            }
            len = server.read(&mut said) => {
                let Ok(len @ 1..) = len else { return };
                let bytes = &said[..len];
                let is_here = |point| point == KillPoint::Committed && has_begun && has(bytes, COMMITTED);
                if let Some(fate) = shared.fate(is_here) {
                    break fate;
                }
                if client.write_all(bytes).await.is_err() {
                    return;
                }
            }
        }
    };
    match fate {
        Breakage::Breaks => {}
        Breakage::StandsStill => while let Ok(1..) = client.read(&mut sent).await {},
    }
}

/// Whether it is in there; commands are spelled either way.
fn has(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window.eq_ignore_ascii_case(text))
}
