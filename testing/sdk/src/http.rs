use serde_json::Value;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// What a server on loopback answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpReply {
    /// The status.
    pub status: u16,
    headers: Vec<(String, String)>,
    /// The body, byte by byte.
    pub body: Vec<u8>,
}

impl HttpReply {
    /// Posts a body with these headers, and waits for what is answered.
    pub async fn of(port: u16, target: &str, headers: &[(&str, &str)], body: &str) -> Self {
        let mut connection = TcpStream::connect(("127.0.0.1", port)).await.expect("it listens");
        let lines: String =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: shop.test\r\nConnection: close\r\n{lines}Content-Length: {}\r\n\r\n",
            body.len()
        );
        connection.write_all((head + body).as_bytes()).await.expect("it reads");
        let mut bytes = Vec::new();
        connection.read_to_end(&mut bytes).await.expect("it answers");
        Self::read(&bytes)
    }

    fn read(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").expect("a whole head");
        let head = String::from_utf8(bytes[..end].to_vec()).expect("a head is text");
        let (status_line, lines) = head.split_once("\r\n").expect("headers");
        let status = status_line.split(' ').nth(1).and_then(|status| status.parse().ok());
        let header = |line: &str| {
            let (name, value) = line.split_once(':').expect("a name and a value");
            (name.to_lowercase(), value.trim().to_owned())
        };
        let mut heard = Self {
            status: status.expect("a status"),
            headers: lines.split("\r\n").map(header).collect(),
            body: bytes[end + 4..].to_vec(),
        };
        if heard.header("transfer-encoding") == Some("chunked") {
            heard.body = joined(&heard.body);
        } else {
            let length = heard.header("content-length").expect("the length of its body");
            assert_eq!(length, heard.body.len().to_string(), "a whole body");
        }
        heard
    }

    /// The only value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(known, _)| known == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} is there once: {self:?}");
        value
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

/// A body that was sent in chunks.
fn joined(mut chunks: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = chunks.windows(2).position(|two| two == b"\r\n").expect("the size of a chunk");
        let size = str::from_utf8(&chunks[..end])
            .ok()
            .and_then(|size| usize::from_str_radix(size, 16).ok());
        let size = size.expect("a size in hexadecimal digits");
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&chunks[end + 2..end + 2 + size]);
        chunks = &chunks[end + 2 + size + 2..];
    }
}
