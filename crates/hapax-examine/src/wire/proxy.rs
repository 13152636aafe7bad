//! A proxy that sends again by itself, as many do.

use std::{io, time::Duration};

use bytes::{Bytes, BytesMut};
use futures_util::future::join;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::timeout,
};

use super::{Wire, draft::AddressedRequest, open::Receiving};
use crate::{ExamRequest, Exchange, HttpAddress, ProbeLog, RawAnswer};

const HEADERS_MAX: usize = 128;
/// The longest that our own client takes to send its request.
const CLIENT_PATIENCE: Duration = Duration::from_secs(5);

/// Why the proxy sends again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProxyFault {
    /// It has no answer within this time, and does not wait for that one any more.
    Impatient(Duration),
    /// It loses the answer that it has.
    Loses,
}

/// A proxy on a port of this machine, for one request.
#[derive(Debug)]
pub(crate) struct ResendingProxy {
    listener: TcpListener,
    /// Where it listens.
    pub(crate) address: HttpAddress,
}

impl ResendingProxy {
    pub(crate) async fn bind() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let address = HttpAddress { tls: false, host: "127.0.0.1".to_owned(), port };
        Ok(Self { listener, address })
    }

    /// Takes one request, sends it to `upstream` twice for this reason, and hands the second answer on. Gives both
    /// exchanges; nothing if no request came.
    pub(crate) async fn pass_on(
        self,
        wire: &Wire,
        log: &ProbeLog,
        (upstream, fault): (&HttpAddress, ProxyFault),
        patience: Duration,
    ) -> Option<[Exchange; 2]> {
        let (mut client, _) = timeout(CLIENT_PATIENCE, self.listener.accept()).await.ok()?.ok()?;
        let request = timeout(CLIENT_PATIENCE, take(&mut client)).await.ok()??;
        let [first, second] = ["192.0.2.1", "192.0.2.2"].map(|way| {
            let way = request.with_header("X-Forwarded-For", way);
            way.with_header("Via", "1.1 resending-proxy")
        });
        let send = |label, request| {
            let addressed = AddressedRequest { address: upstream, index: 0, request };
            async move {
                match wire.send(log, label, addressed, Receiving::Ordinary).await {
                    Ok(sent) => sent.read(log, patience).await,
                    Err(failed) => failed,
                }
            }
        };
        let first = send("sent by the proxy", &first);
        let second = send("sent again by the proxy", &second);
        let exchanges: [Exchange; 2] = match fault {
            ProxyFault::Loses => [first.await, second.await],
            ProxyFault::Impatient(after) => {
                let later = async {
                    tokio::time::sleep(after).await;
                    second.await
                };
                join(first, later).await.into()
            }
        };
        if let Some(answer) = exchanges[1].answer() {
            // Whether the client is still there is seen at its exchange.
            let _ = client.write_all(&written(answer)).await;
        }
        Some(exchanges)
    }
}

/// The request of a client; nothing if it is not one.
async fn take(client: &mut TcpStream) -> Option<ExamRequest> {
    let mut bytes = BytesMut::new();
    loop {
        if let Some(request) = parse(&bytes) {
            return Some(request);
        }
        if client.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
}

/// The request that these bytes are, once it is whole.
fn parse(bytes: &[u8]) -> Option<ExamRequest> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut head = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(body_at) = head.parse(bytes).ok()? else { return None };
    let (method, path) = (head.method?.to_owned(), head.path?.to_owned());
    let mut length = 0;
    let mut kept = Vec::new();
    for header in head.headers {
        let value = String::from_utf8_lossy(header.value).into_owned();
        if header.name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        } else if !header.name.eq_ignore_ascii_case("host") {
            kept.push((header.name.to_owned(), value));
        }
    }
    let body = Bytes::copy_from_slice(bytes.get(body_at..body_at.checked_add(length)?)?);
    Some(ExamRequest { method, body, ..ExamRequest::get(&path, kept) })
}

/// An answer as the proxy writes it.
fn written(answer: &RawAnswer) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {} Told\r\n", answer.status);
    let framing = ["content-length", "transfer-encoding", "connection"];
    for (name, value) in &answer.headers {
        if !framing.contains(&name.as_str()) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    head.push_str(&format!("content-length: {}\r\nconnection: close\r\n\r\n", answer.body.len()));
    let mut bytes = head.into_bytes();
    bytes.extend_from_slice(&answer.body);
    bytes
}
