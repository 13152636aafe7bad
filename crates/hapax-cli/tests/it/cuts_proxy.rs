//! A proxy between the gateway and its upstream that cuts exchanges where it is told to.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
    task::JoinHandle,
};

/// Where an exchange is cut, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cut {
    pub(crate) of: Part,
    /// After so many bytes of that part.
    pub(crate) at: usize,
    pub(crate) how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Request,
    Answer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// The end of the stream.
    Fin,
    /// A reset.
    Rst,
    /// Nothing more, until the other side gives up.
    Silence,
}

/// Passes exchanges on, and cuts the first one of every key that has a cut planned.
pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    plan: Arc<Plan>,
    passing: JoinHandle<()>,
}

#[derive(Default)]
struct Plan {
    cuts: Mutex<HashMap<String, Cut>>,
    bytes: Mutex<(usize, usize)>,
}

impl Proxy {
    pub(crate) async fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, plan) = (listener.local_addr().unwrap(), Arc::<Plan>::default());
        let passing = tokio::spawn({
            let plan = Arc::clone(&plan);
            async move {
                while let Ok((gateway, _)) = listener.accept().await {
                    let plan = Arc::clone(&plan);
                    tokio::spawn(async move { plan.pass(gateway, upstream).await });
                }
            }
        });
        Self { address, plan, passing }
    }

    /// Cuts the next exchange of this key.
    pub(crate) fn plan(&self, key: &str, cut: Cut) {
        self.plan.cuts.lock().unwrap().insert(key.to_owned(), cut);
    }

    /// The keys whose cut was not made, because they were never seen.
    pub(crate) fn left(&self) -> Vec<String> {
        self.plan.cuts.lock().unwrap().keys().cloned().collect()
    }

    /// How long the request and the answer of the last exchange were that was not cut, in bytes.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        *self.plan.bytes.lock().unwrap()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.passing.abort();
    }
}

impl Plan {
    /// Passes exchanges on until a side closes or one is cut.
    async fn pass(&self, gateway: TcpStream, upstream: SocketAddr) -> Option<()> {
        let mut gateway = BufReader::new(gateway);
        let mut upstream = BufReader::new(TcpStream::connect(upstream).await.ok()?);
        loop {
            let request = read_message(&mut gateway).await?;
            let cut = self.cuts.lock().unwrap().remove(&key_of(&request));
            if let Some(Cut { at, how, .. }) = cut.filter(|cut| cut.of == Part::Request) {
                upstream.write_all(&request[..at.min(request.len())]).await.ok()?;
                return cut_off(gateway, upstream, how).await;
            }
            upstream.write_all(&request).await.ok()?;
            let answer = read_message(&mut upstream).await?;
            if let Some(Cut { at, how, .. }) = cut {
                gateway.write_all(&answer[..at.min(answer.len())]).await.ok()?;
                return cut_off(gateway, upstream, how).await;
            }
            *self.bytes.lock().unwrap() = (request.len(), answer.len());
            gateway.write_all(&answer).await.ok()?;
        }
    }
}

async fn cut_off(
    mut gateway: BufReader<TcpStream>,
    upstream: BufReader<TcpStream>,
    how: How,
) -> Option<()> {
    match how {
        How::Fin => {}
        How::Rst => {
            gateway.get_ref().set_zero_linger().ok()?;
            upstream.get_ref().set_zero_linger().ok()?;
        }
        How::Silence => {
            gateway.read_to_end(&mut Vec::new()).await.ok()?;
        }
    }
    Some(())
}

/// Reads one message with a `Content-Length`, as bytes; `None` if it was not complete.
pub(crate) async fn read_message(socket: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let (mut message, mut len) = (String::new(), 0);
    loop {
        let start = message.len();
        socket.read_line(&mut message).await.ok().filter(|read| *read > 0)?;
        let line = message[start..].trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            len = value.trim().parse().ok()?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut message = message.into_bytes();
    let head = message.len();
    message.resize(head + len, 0);
    socket.read_exact(&mut message[head..]).await.ok()?;
    Some(message)
}

/// The key a request carries; empty without one.
pub(crate) fn key_of(request: &[u8]) -> String {
    let text = String::from_utf8_lossy(request);
    let value = text.lines().find_map(|line| line.strip_prefix("idempotency-key: "));
    value.unwrap_or_default().trim_matches('"').to_owned()
}
