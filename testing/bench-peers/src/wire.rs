//! One connection: send a request, read its answer, as cheaply as can be.

use std::{io, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);
const HEAD_BYTES_MAX: usize = 16 << 10;
const READ_BYTES: usize = 4 << 10;

/// A connection that is kept open from request to request.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    received: Vec<u8>,
    sent: Vec<u8>,
    path: &'static str,
    /// The session, for ways that ask for one; sent with every request.
    cookie: Option<String>,
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

impl Client {
    pub(crate) async fn connect(port: u16, path: &'static str) -> Result<Self, Wrong> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::new(), sent: Vec::new(), path, cookie: None })
    }

    /// Asks for a session there, and carries it from now on.
    pub(crate) async fn log_in(&mut self, path: &str) -> Result<(), Wrong> {
        let (status, body_at) = self.exchange_get(path).await?;
        let cookie = header(&self.received[..body_at], "set-cookie");
        let cookie = cookie.and_then(|cookie| cookie.split(';').next()).filter(|_| status == 200);
        self.cookie = Some(cookie.ok_or(Wrong::NoSession)?.to_owned());
        Ok(())
    }

    /// Carries the session of another connection.
    pub(crate) fn share(&mut self, other: &Self) {
        self.cookie.clone_from(&other.cookie);
    }

    pub(crate) async fn get(&mut self, path: &str) -> Result<Answer, Wrong> {
        let (status, body_at) = self.exchange_get(path).await?;
        Ok(Answer { status, body: text(&self.received[body_at..]) })
    }

    /// Asks for the effect under this key.
    pub(crate) async fn pay(&mut self, key: &str, body: &str) -> Result<Answer, Wrong> {
        let (status, body) = self.pay_raw(key, body).await?;
        Ok(Answer { status, body: text(body) })
    }

    /// The same, without copying what came back.
    pub(crate) async fn pay_raw(&mut self, key: &str, body: &str) -> Result<(u16, &[u8]), Wrong> {
        let (path, length) = (self.path, body.len());
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: bench.test\r\nAuthorization: Bearer bench\r\n\
             Content-Type: application/json\r\nIdempotency-Key: {key}\r\n\
             Content-Length: {length}\r\n"
        );
        let (status, body_at) = self.exchange(&head, body).await?;
        Ok((status, &self.received[body_at..]))
    }

    async fn exchange_get(&mut self, path: &str) -> Result<(u16, usize), Wrong> {
        self.exchange(&format!("GET {path} HTTP/1.1\r\nHost: bench.test\r\n"), "").await
    }

    async fn exchange(&mut self, head: &str, body: &str) -> Result<(u16, usize), Wrong> {
        self.sent.clear();
        self.sent.extend_from_slice(head.as_bytes());
        if let Some(cookie) = &self.cookie {
            self.sent.extend_from_slice(b"Cookie: ");
            self.sent.extend_from_slice(cookie.as_bytes());
            self.sent.extend_from_slice(b"\r\n");
        }
        self.sent.extend_from_slice(b"\r\n");
        self.sent.extend_from_slice(body.as_bytes());
        let (stream, received) = (&mut self.stream, &mut self.received);
        stream.write_all(&self.sent).await?;
        timeout(PATIENCE, receive(stream, received)).await.map_err(|_| Wrong::Silent)?
    }
}

/// Reads one answer: its status, and where its body starts.
async fn receive(stream: &mut TcpStream, received: &mut Vec<u8>) -> Result<(u16, usize), Wrong> {
    received.clear();
    received.reserve(READ_BYTES);
    loop {
        if stream.read_buf(received).await? == 0 {
            return Err(Wrong::HungUp);
        }
        if let Some((status, body_at, end)) = whole(received)? {
            return if end == received.len() {
                Ok((status, body_at))
            } else {
                Err(Wrong::Unreadable)
            };
        }
    }
}

/// The status, the start and the end of the body; `None` until all of it has come.
fn whole(bytes: &[u8]) -> Result<Option<(u16, usize, usize)>, Wrong> {
    let Some(head_end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else {
        return if bytes.len() > HEAD_BYTES_MAX { Err(Wrong::Unreadable) } else { Ok(None) };
    };
    let (head, body_at) = (&bytes[..head_end + 2], head_end + 4);
    let status = head.get(9..12).and_then(|digits| str::from_utf8(digits).ok()?.parse().ok());
    let length = header(head, "content-length").and_then(|digits| digits.parse::<usize>().ok());
    let (Some(status), Some(length)) = (status, length) else { return Err(Wrong::Unreadable) };
    let end = body_at.saturating_add(length);
    Ok((bytes.len() >= end).then_some((status, body_at, end)))
}

/// The value of a header, by its name in any case.
fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    head.split(|byte| *byte == b'\n').find_map(|line| {
        let value = line.get(name.len()..)?.strip_prefix(b":")?;
        let named = line[..name.len()].eq_ignore_ascii_case(name.as_bytes());
        named.then(|| str::from_utf8(value.trim_ascii()).ok()).flatten()
    })
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Wrong {
    #[error("a connection broke")]
    Broken(#[from] io::Error),
    #[error("a connection was closed before its request was answered")]
    HungUp,
    #[error("an answer cannot be read, or does not announce its length")]
    Unreadable,
    #[error("a request was not answered in {PATIENCE:?}")]
    Silent,
    #[error("no session was given")]
    NoSession,
    #[error("a request was answered {status}: {text}")]
    Refused { status: u16, text: String },
    #[error("a connection of the load ended early")]
    Ended(#[from] tokio::task::JoinError),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_there_when_its_last_byte_is() {
        let bytes = b"HTTP/1.1 201 Created\r\ncontent-LENGTH: 3\r\nDate: now\r\n\r\nabc";
        for end in 0..bytes.len() {
            assert!(matches!(whole(&bytes[..end]), Ok(None)), "{end}");
        }
        let (status, body_at, end) = whole(bytes).unwrap().unwrap();
        assert_eq!((status, &bytes[body_at..end]), (201, &b"abc"[..]));
    }

    #[test]
    fn an_answer_without_a_length_is_refused() {
        let bytes = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(matches!(whole(bytes), Err(Wrong::Unreadable)));
    }

    #[test]
    fn a_header_is_found_by_its_whole_name() {
        let head = b"HTTP/1.1 200 OK\r\nX-Set-Cookie: a\r\nSet-Cookie: b=1; Path=/\r\n";
        assert_eq!(header(head, "set-cookie"), Some("b=1; Path=/"));
        assert_eq!(header(head, "cookie"), None);
    }
}
