//! One connection of the load: send, and read the answer as cheaply as can be.

use std::io;

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::{
    ledger::{self, LedgerTotals},
    wire::{self, HttpAnswer, PreparedRequest, UnreadableAnswer},
};
use crate::request;

/// A connection that is kept open from request to request.
#[derive(Debug)]
pub(crate) struct KeepAliveClient {
    stream: TcpStream,
    buffer: Vec<u8>,
    request: PreparedRequest,
    expected: Vec<u8>,
}

impl KeepAliveClient {
    pub(crate) async fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let expected = request::answer();
        Ok(Self { stream, buffer: Vec::new(), request: PreparedRequest::new(), expected })
    }

    /// Makes the request with this number; the answer has to be the upstream's, byte by byte.
    pub(super) async fn pay(&mut self, number: u64) -> Result<(), WrongAnswer> {
        self.stream.write_all(self.request.numbered(number)).await?;
        let body = successful(&mut self.stream, &mut self.buffer).await?;
        if body == self.expected { Ok(()) } else { Err(WrongAnswer::Body) }
    }

    /// Makes a request without effect.
    pub(super) async fn get(&mut self, path: &str) -> Result<&[u8], WrongAnswer> {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: bench.test\r\nAuthorization: Bearer bench\r\n\r\n"
        );
        self.stream.write_all(request.as_bytes()).await?;
        successful(&mut self.stream, &mut self.buffer).await
    }

    /// What the upstream executed; asked on a connection to the upstream itself.
    pub(crate) async fn totals(&mut self) -> Result<LedgerTotals, WrongAnswer> {
        LedgerTotals::read(self.get(ledger::PATH).await?).ok_or(WrongAnswer::Body)
    }
}

/// The body of an answer that says it worked.
async fn successful<'a>(
    stream: &mut TcpStream,
    buffer: &'a mut Vec<u8>,
) -> Result<&'a [u8], WrongAnswer> {
    let HttpAnswer { status, body } = receive(stream, buffer).await?;
    let body = &buffer[body];
    match status {
        200..=299 => Ok(body),
        status => Err(WrongAnswer::Status { status, text: excerpt(body) }),
    }
}

/// Reads one answer into the buffer, and nothing after it.
pub(super) async fn receive(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> Result<HttpAnswer, WrongAnswer> {
    const READ_BYTES: usize = 4 << 10;
    buffer.clear();
    buffer.reserve(READ_BYTES);
    loop {
        if stream.read_buf(buffer).await? == 0 {
            return Err(WrongAnswer::HungUp);
        }
        if let Some(answer) = wire::answer(buffer)? {
            return if answer.body.end == buffer.len() {
                Ok(answer)
            } else {
                Err(WrongAnswer::Body)
            };
        }
    }
}

/// Why an answer does not count.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WrongAnswer {
    #[error("a connection broke")]
    Broken(#[from] io::Error),
    #[error("a connection was closed before its request was answered")]
    HungUp,
    #[error("an answer cannot be read")]
    Unreadable(#[from] UnreadableAnswer),
    #[error("a request was answered with {status}: {text}")]
    Status { status: u16, text: String },
    #[error("an answer is not the one the upstream gave")]
    Body,
    #[error("requests were not answered in time")]
    Silent,
    #[error("a connection of the load ended early")]
    Ended(#[from] tokio::task::JoinError),
}

fn excerpt(body: &[u8]) -> String {
    const CHARS_MAX: usize = 200;
    let text = String::from_utf8_lossy(body);
    text.chars().take(CHARS_MAX).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
