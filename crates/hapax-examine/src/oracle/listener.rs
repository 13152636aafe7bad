//! A small server of our own, for what the API under test sends out.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::BytesMut;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    task::{AbortHandle, JoinSet},
    time::timeout,
};

use super::{WholeArrival, arrival::ArrivalState};

/// Connections at once; others wait until one is over.
const CONNECTIONS_MAX: usize = 1024;
/// How long the next bytes of a connection are waited for.
const IDLE_PATIENCE: Duration = Duration::from_secs(60);

/// What is done with requests that arrive.
pub(super) trait Arrivals: Send + Sync + 'static {
    /// Counts it, and says what it is answered with; nothing where the connection is dropped instead.
    fn arrive(&self, request: WholeArrival) -> impl Future<Output = Option<ListenerReply>> + Send;
}

/// An answer with a body of JSON.
#[derive(Debug, Clone)]
pub(super) struct ListenerReply {
    pub(super) status: u16,
    pub(super) body: String,
}

/// A listener, which ends when this is dropped.
#[derive(Debug)]
pub(super) struct ListeningTask {
    address: SocketAddr,
    task: AbortHandle,
}

impl ListeningTask {
    /// Listens at an address, and hands over what arrives there.
    pub(super) async fn begin(
        address: SocketAddr,
        arrivals: Arc<impl Arrivals>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let task = tokio::spawn(listen(listener, arrivals)).abort_handle();
        Ok(Self { address, task })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for ListeningTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Ending it ends its connections as well.
async fn listen(listener: TcpListener, arrivals: Arc<impl Arrivals>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(serve(stream, arrivals.clone()));
                    }
                    // Out of descriptors, as a rule: others may end.
                    Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves one connection to its end. One that breaks is nothing that anybody is told of.
async fn serve(mut stream: TcpStream, arrivals: Arc<impl Arrivals>) {
    let mut buffer = BytesMut::new();
    // Without it, answers in two pieces come late.
    let _ = stream.set_nodelay(true);
    while let Some(request) = next_request(&mut stream, &mut buffer).await {
        let is_kept_alive = request.is_kept_alive;
        let Some(reply) = arrivals.arrive(request).await else { return };
        if stream.write_all(&reply.written(is_kept_alive)).await.is_err() || !is_kept_alive {
            return;
        }
    }
}

async fn next_request(stream: &mut TcpStream, buffer: &mut BytesMut) -> Option<WholeArrival> {
    let mut is_told = false;
    loop {
        match WholeArrival::take(buffer) {
            ArrivalState::Whole(request) => return Some(request),
            ArrivalState::Partial { waits: true } if !is_told => {
                is_told = true;
                stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.ok()?;
            }
            ArrivalState::Partial { .. } => {}
            ArrivalState::Unreadable => {
                let reply = ListenerReply { status: 400, body: "{}".to_owned() };
                stream.write_all(&reply.written(false)).await.ok()?;
                return None;
            }
        }
        match timeout(IDLE_PATIENCE, stream.read_buf(buffer)).await {
            Ok(Ok(bytes)) if bytes > 0 => {}
            Ok(Ok(_) | Err(_)) | Err(_) => return None,
        }
    }
}

impl ListenerReply {
    fn written(&self, is_kept_alive: bool) -> Vec<u8> {
        let Self { status, body } = self;
        let reason = http::StatusCode::from_u16(*status).ok().and_then(|it| it.canonical_reason());
        let connection = if is_kept_alive { "keep-alive" } else { "close" };
        format!(
            "HTTP/1.1 {status} {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: {connection}\r\n\r\n{body}",
            reason.unwrap_or("Status"),
            body.len()
        )
        .into_bytes()
    }
}
