//! Who asks.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use hapax_zoo::RunningSpecies;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// What is asked: a payment by alice, unless it is made another.
#[derive(Debug, Clone)]
pub(crate) struct Ask {
    pub(crate) path: &'static str,
    pub(crate) keys: Vec<String>,
    pub(crate) token: Option<&'static str>,
    pub(crate) headers: Vec<(&'static str, &'static str)>,
    pub(crate) body: String,
}

/// What was answered.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

pub(crate) const MARKER: &str = "m-1";

impl Ask {
    pub(crate) fn with_key(key: &str) -> Self {
        Self {
            path: "/payments",
            keys: vec![key.to_owned()],
            token: Some("alice"),
            headers: Vec::new(),
            body: body(100, MARKER),
        }
    }

    pub(crate) fn on(self, path: &'static str) -> Self {
        Self { path, ..self }
    }

    pub(crate) fn by(self, token: Option<&'static str>) -> Self {
        Self { token, ..self }
    }

    pub(crate) fn body(self, body: impl Into<String>) -> Self {
        Self { body: body.into(), ..self }
    }

    pub(crate) fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// On a connection of its own.
    pub(crate) async fn send(&self, address: SocketAddr) -> Told {
        self.send_by(&http1(), address).await
    }

    pub(crate) async fn send_by(
        &self,
        client: &Client<HttpConnector, Full<Bytes>>,
        to: SocketAddr,
    ) -> Told {
        let mut request = Request::post(format!("http://{to}{}", self.path));
        for (name, value) in self.pairs() {
            request = request.header(name, value);
        }
        let request = request.body(Full::from(self.body.clone())).unwrap();
        told(client.request(request).await.unwrap()).await
    }

    /// As it is written on an HTTP/1.1 connection.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut text = format!("POST {} HTTP/1.1\r\nhost: zoo\r\n", self.path);
        for (name, value) in self.pairs() {
            text += &format!("{name}: {value}\r\n");
        }
        text += &format!("content-length: {}\r\n\r\n{}", self.body.len(), self.body);
        text.into_bytes()
    }

    fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![("content-type", "application/json".to_owned())];
        pairs.extend(self.keys.iter().map(|key| ("idempotency-key", key.clone())));
        pairs.extend(self.token.map(|token| ("authorization", format!("Bearer {token}"))));
        pairs.extend(self.headers.iter().map(|(name, value)| (*name, (*value).to_owned())));
        pairs
    }
}

pub(crate) fn body(amount: u64, marker: &str) -> String {
    format!(r#"{{"amount":{amount},"currency":"EUR","ref":"{marker}"}}"#)
}

pub(crate) fn http1() -> Client<HttpConnector, Full<Bytes>> {
    Client::builder(TokioExecutor::new()).build_http()
}

pub(crate) fn http2() -> Client<HttpConnector, Full<Bytes>> {
    Client::builder(TokioExecutor::new()).http2_only(true).build_http()
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> Told {
    get_by(&http1(), address, path).await
}

pub(crate) async fn get_by(
    client: &Client<HttpConnector, Full<Bytes>>,
    address: SocketAddr,
    path: &str,
) -> Told {
    let request = Request::get(format!("http://{address}{path}")).body(Full::default()).unwrap();
    told(client.request(request).await.unwrap()).await
}

pub(crate) async fn hook(address: SocketAddr, what: &str) {
    let request = Request::post(format!("http://{address}/_hooks/{what}"));
    let response = http1().request(request.body(Full::default()).unwrap()).await.unwrap();
    assert_eq!(response.status(), 200, "{what}");
}

/// Writes these bytes, and gives the connection.
pub(crate) async fn write(address: SocketAddr, bytes: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(bytes).await.unwrap();
    stream
}

/// What comes until so many answers have begun, or the connection ends.
pub(crate) async fn read_answers(stream: &mut TcpStream, count: usize) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if text.matches("HTTP/1.1 ").count() >= count && text.ends_with('}') {
            return text;
        }
        if stream.read_buf(&mut bytes).await.unwrap() == 0 {
            return text;
        }
    }
}

/// Two asks of which the second comes while the first is held before its effect.
pub(crate) async fn overlapping(
    running: &RunningSpecies,
    first: impl Future<Output = Told> + Send + 'static,
    second: impl Future<Output = Told> + Send + 'static,
) -> (Told, Told) {
    let before = running.handlers_so_far();
    running.hold();
    let first = tokio::spawn(first);
    running.handlers(before + 1).await;
    let mut second = tokio::spawn(second);
    let finished = tokio::select! {
        () = running.handlers(before + 2) => None,
        told = &mut second => Some(told.unwrap()),
        // It waits for the first, and will tell what that has come to.
        () = tokio::time::sleep(Duration::from_millis(300)) => None,
    };
    running.release();
    let first = first.await.unwrap();
    match finished {
        Some(told) => (first, told),
        None => (first, second.await.unwrap()),
    }
}

async fn told(response: http::Response<hyper::body::Incoming>) -> Told {
    let (head, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    Told { status: head.status.as_u16(), headers: head.headers, text }
}
