//! APIs of users, as small as a case needs them.

use std::{net::SocketAddr, sync::Arc};

use hapax_examine::HttpAddress;
use rustls::pki_types::PrivateKeyDer;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpListener,
    task::AbortHandle,
};
use tokio_rustls::TlsAcceptor;

/// What was asked.
#[derive(Debug)]
pub(crate) struct PlayedRequest {
    /// `POST /payments`.
    pub(crate) line: String,
    /// All of it, as it came.
    pub(crate) text: String,
}

/// What is answered: a status, headers and a body; nothing where the connection is closed instead.
pub(crate) type PlayedAnswer = Option<(u16, String, String)>;

/// Answers until it is dropped.
#[derive(Debug)]
pub(crate) struct PlayedApi {
    pub(crate) address: HttpAddress,
    listener: AbortHandle,
}

impl PlayedRequest {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let (head, _) = self.text.split_once("\r\n\r\n")?;
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        lines
            .into_iter()
            .find(|(given, _)| given.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The marker, in the body or in the path.
    pub(crate) fn marker(&self) -> String {
        let rest = self.text.split("hpx-").nth(if self.line.starts_with("GET") { 1 } else { 2 });
        let marker = rest
            .unwrap_or_default()
            .chars()
            .take_while(|one| one.is_ascii_alphanumeric() || *one == '-');
        marker.collect()
    }
}

impl PlayedApi {
    /// One that answers so.
    pub(crate) async fn start(
        answer: impl Fn(&PlayedRequest) -> PlayedAnswer + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = http(listener.local_addr().unwrap());
        let answer = Arc::new(answer);
        let listening = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let answer = answer.clone();
                tokio::spawn(async move { serve(stream, &*answer).await });
            }
        });
        Self { address, listener: listening.abort_handle() }
    }

    /// One that does so over TLS, with a certificate that nobody trusts.
    pub(crate) async fn start_tls(
        answer: impl Fn(&PlayedRequest) -> PlayedAnswer + Send + Sync + 'static,
    ) -> Self {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let answer = Arc::new(answer);
        let listening = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (acceptor, answer) = (acceptor.clone(), answer.clone());
                tokio::spawn(async move {
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, &*answer).await;
                    }
                });
            }
        });
        let address = HttpAddress { tls: true, host: "localhost".to_owned(), port };
        Self { address, listener: listening.abort_handle() }
    }
}

impl Drop for PlayedApi {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// Where nobody listens.
pub(crate) async fn nobody() -> HttpAddress {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    http(listener.local_addr().unwrap())
}

pub(crate) fn json(status: u16, body: impl Into<String>) -> PlayedAnswer {
    Some((status, String::new(), body.into()))
}

fn http(address: SocketAddr) -> HttpAddress {
    HttpAddress::parse(&format!("http://{address}/")).unwrap().0
}

/// One request, and its answer.
async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: &(impl Fn(&PlayedRequest) -> PlayedAnswer + Sync),
) {
    let mut bytes = Vec::new();
    let text = loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                break text;
            }
        }
        match stream.read_buf(&mut bytes).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    };
    let line = text.lines().next().unwrap_or_default().replace(" HTTP/1.1", "");
    let Some((status, headers, body)) = answer(&PlayedRequest { line, text }) else { return };
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status} Told\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    // Whoever has left is told nothing.
    let _ = stream.write_all(text.as_bytes()).await;
    let _ = stream.shutdown().await;
}
