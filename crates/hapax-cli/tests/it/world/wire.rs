//! HTTP/1.1 as bytes on a socket, so that a test can say what a library would forbid.

use std::{collections::HashMap, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    time::timeout,
};

use super::PATIENCE;

/// An answer, as it came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    /// The last part of a problem's type: its code.
    pub(crate) fn code(&self) -> Option<String> {
        self.problem_type()?.rsplit('/').next().map(str::to_owned)
    }

    /// Where a problem is explained.
    pub(crate) fn problem_type(&self) -> Option<String> {
        let problem: serde_json::Value = serde_json::from_slice(&self.body).ok()?;
        problem["type"].as_str().map(str::to_owned)
    }
}

/// A request with a key and a body, from the caller `alice`.
pub(crate) fn post(path: &str, key: &str, body: &str) -> String {
    let len = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: alice\r\n\
         idempotency-key: \"{key}\"\r\ncontent-type: text/plain\r\ncontent-length: {len}\r\n\r\n\
         {body}"
    )
}

/// Sends bytes on a connection of their own; `None` if no complete answer came back.
pub(crate) async fn ask(to: SocketAddr, request: impl AsRef<[u8]>) -> Option<Answer> {
    let exchange = async {
        let mut socket = TcpStream::connect(to).await.ok()?;
        // A server that refused early may have closed already; its answer is read all the same.
        let _ = socket.write_all(request.as_ref()).await;
        read_answer(&mut BufReader::new(socket)).await
    };
    timeout(PATIENCE, exchange).await.ok().flatten()
}

/// A connection a test speaks on more than once.
pub(crate) struct Connection(BufReader<TcpStream>);

impl Connection {
    pub(crate) async fn open(to: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(to).await.unwrap()))
    }

    /// One that was opened by somebody else.
    pub(crate) fn on(socket: BufReader<TcpStream>) -> Self {
        Self(socket)
    }

    /// Sends bytes; a server that has closed already is none of its business.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.0.get_mut().write_all(bytes.as_ref()).await;
    }

    /// Says that nothing more is sent.
    pub(crate) async fn finish(&mut self) {
        let _ = self.0.get_mut().shutdown().await;
    }

    /// The next answer; `None` if the connection ended before it was complete.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        timeout(PATIENCE, read_answer(&mut self.0)).await.ok().flatten()
    }

    /// Whether the server closes the connection without another byte.
    pub(crate) async fn ends(&mut self) -> bool {
        let read = timeout(PATIENCE, self.0.read(&mut [0; 1])).await;
        matches!(read, Ok(Ok(0) | Err(_)))
    }

    /// The socket, for what has no name here.
    pub(crate) fn socket(&mut self) -> &mut BufReader<TcpStream> {
        &mut self.0
    }
}

/// Reads one answer; `None` if the connection ended before it was complete.
async fn read_answer(socket: &mut BufReader<TcpStream>) -> Option<Answer> {
    let status = line(socket).await?.split(' ').nth(1)?.parse().ok()?;
    let mut headers = HashMap::new();
    loop {
        let line = line(socket).await?;
        let Some((name, value)) = line.split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = Vec::new();
    if let Some(len) = headers.get("content-length") {
        body.resize(len.parse().ok()?, 0);
        socket.read_exact(&mut body).await.ok()?;
    } else if headers.get("transfer-encoding").is_some_and(|coding| coding == "chunked") {
        loop {
            let len = usize::from_str_radix(&line(socket).await?, 16).ok()?;
            let start = body.len();
            body.resize(start + len, 0);
            socket.read_exact(&mut body[start..]).await.ok()?;
            line(socket).await?;
            if len == 0 {
                break;
            }
        }
    } else if status >= 200 && status != 204 && status != 304 {
        timeout(Duration::from_secs(5), socket.read_to_end(&mut body)).await.ok()?.ok()?;
    }
    Some(Answer { status, headers, body })
}

async fn line(socket: &mut BufReader<TcpStream>) -> Option<String> {
    let mut line = String::new();
    let read = socket.read_line(&mut line).await.ok()?;
    (read > 0 && line.ends_with('\n')).then(|| line.trim_end().to_owned())
}
