//! The API behind every way: it answers 512 bytes and remembers what it executed.

use std::{
    fs, io,
    path::Path,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    runtime::Builder,
};

use super::{
    error::HttpError,
    ledger::{self, UpstreamLedger},
    wire,
};
use crate::{BenchError, request};

/// Serves on a free port, whose number is written to the file, until the process is ended.
pub(crate) fn serve(port_file: &Path) -> Result<(), BenchError> {
    let runtime = Builder::new_current_thread().enable_io().build().map_err(BenchError::Runtime)?;
    Ok(runtime.block_on(listen(port_file)).map_err(HttpError::Upstream)?)
}

async fn listen(port_file: &Path) -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    // Renamed, so that nobody reads half a number.
    let unfinished = port_file.with_extension("part");
    fs::write(&unfinished, port.to_string())?;
    fs::rename(&unfinished, port_file)?;
    let seen = Arc::new(Mutex::new(UpstreamLedger::default()));
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        let seen = Arc::clone(&seen);
        tokio::spawn(async move {
            // A client that hangs up ends its own connection alone.
            let _ = Connection::new(stream).serve(&seen).await;
        });
    }
}

const READ_BYTES: usize = 16 << 10;

struct Connection {
    stream: TcpStream,
    /// What was read and not yet used.
    unread: Vec<u8>,
    executed: Vec<u8>,
}

impl Connection {
    fn new(stream: TcpStream) -> Self {
        let body = request::answer();
        let executed = answer("application/octet-stream", &body);
        Self { stream, unread: Vec::with_capacity(READ_BYTES), executed }
    }

    async fn serve(&mut self, seen: &Mutex<UpstreamLedger>) -> io::Result<()> {
        while let Some(request) = self.next().await? {
            match request {
                UpstreamTask::Effect(key) => {
                    locked(seen).executed(&key);
                    self.stream.write_all(&self.executed).await?;
                }
                UpstreamTask::Totals => {
                    let totals = locked(seen).totals().json().to_string();
                    let answer = answer("application/json", totals.as_bytes());
                    self.stream.write_all(&answer).await?;
                }
                UpstreamTask::Nothing => self.stream.write_all(&answer("text/plain", b"")).await?,
                UpstreamTask::Unreadable => {
                    self.stream.write_all(REFUSAL).await?;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The next request, its body read and dropped; `None` if there will be no more.
    async fn next(&mut self) -> io::Result<Option<UpstreamTask>> {
        let start = loop {
            match wire::head_end(&self.unread) {
                Ok(Some(start)) => break start,
                Ok(None) => {}
                Err(_) => return Ok(Some(UpstreamTask::Unreadable)),
            }
            if self.stream.read_buf(&mut self.unread).await? == 0 {
                return Ok(None);
            }
        };
        let (asked, body_bytes) = read(&self.unread[..start]);
        let mut missing = (start + body_bytes).saturating_sub(self.unread.len());
        self.unread.drain(..self.unread.len().min(start + body_bytes));
        while missing > 0 {
            let mut rest = (&mut self.stream).take(u64::try_from(missing).unwrap_or(u64::MAX));
            let read = rest.read_buf(&mut self.unread).await?;
            if read == 0 {
                return Ok(None);
            }
            missing -= read;
            self.unread.clear();
        }
        Ok(Some(asked))
    }
}

/// Counting does not stop half-way, so a poisoned ledger is still right.
fn locked(seen: &Mutex<UpstreamLedger>) -> MutexGuard<'_, UpstreamLedger> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a request wants.
#[derive(Debug, PartialEq, Eq)]
enum UpstreamTask {
    /// The effect, under this key.
    Effect(Box<[u8]>),
    Totals,
    Nothing,
    Unreadable,
}

/// What a head asks for, and how long its body is.
fn read(head: &[u8]) -> (UpstreamTask, usize) {
    let body_bytes = match wire::body_bytes(head) {
        Ok(Some(bytes)) => bytes,
        Ok(None) if head.starts_with(b"GET ") => 0,
        Ok(None) | Err(_) => return (UpstreamTask::Unreadable, 0),
    };
    let asked = if head.starts_with(b"POST ") {
        wire::header(head, wire::KEY_HEADER)
            .map_or(UpstreamTask::Unreadable, |key| UpstreamTask::Effect(key.into()))
    } else if head
        .strip_prefix(b"GET ")
        .is_some_and(|rest| rest.starts_with(ledger::PATH.as_bytes()))
    {
        UpstreamTask::Totals
    } else {
        UpstreamTask::Nothing
    };
    (asked, body_bytes)
}

fn answer(kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

const REFUSAL: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_needs_a_key_and_a_length() {
        let head = wire::head("k", 250);
        assert_eq!(read(head.as_bytes()), (UpstreamTask::Effect((*b"\"k\"").into()), 250));
        assert_eq!(
            read(b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\n"),
            (UpstreamTask::Unreadable, 5)
        );
        assert_eq!(
            read(b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"),
            (UpstreamTask::Unreadable, 0)
        );
    }

    #[test]
    fn looking_something_up_has_no_effect() {
        assert_eq!(read(b"GET /ledger HTTP/1.1\r\n\r\n"), (UpstreamTask::Totals, 0));
        assert_eq!(read(b"GET / HTTP/1.1\r\n\r\n"), (UpstreamTask::Nothing, 0));
    }
}
