//! One try: a connection of its own, a request, and the end of patience.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinSet, time::timeout};

use super::order::Order;

/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// What a client knows after a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// It is paid.
    Paid { replayed: bool },
    /// Somebody is at it (409), and may be for this long.
    Busy { retry_after: Duration },
    /// The key belongs to another request (422).
    Reused,
    /// Something else: nobody can tell whether it is paid.
    Failure,
    /// Nothing, within its patience.
    Nothing,
}

/// Asks for a payment once. The key is the order's reference.
pub(super) async fn ask(shop: SocketAddr, order: &Order, patience: Duration) -> Heard {
    match timeout(patience, exchange(shop, order)).await {
        Ok(Some(heard)) => heard,
        Ok(None) | Err(_) => Heard::Nothing,
    }
}

/// Dropped early, it takes its connection with it, as a client does that dies.
async fn exchange(shop: SocketAddr, order: &Order) -> Option<Heard> {
    let stream = TcpStream::connect(shop).await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    let mut driven = JoinSet::new();
    driven.spawn(connection);
    let answer = sender.send_request(request(shop, order)?).await.ok()?;
    let (parts, body) = answer.into_parts();
    Limited::new(body, ANSWER_BYTES_MAX).collect().await.ok()?;
    Some(match parts.status {
        status if status.is_success() => {
            Heard::Paid { replayed: parts.headers.contains_key("idempotent-replayed") }
        }
        StatusCode::CONFLICT => Heard::Busy { retry_after: retry_after(&parts.headers) },
        StatusCode::UNPROCESSABLE_ENTITY => Heard::Reused,
        _ => Heard::Failure,
    })
}

fn request(shop: SocketAddr, order: &Order) -> Option<Request<Full<Bytes>>> {
    Request::post("/payments")
        .header(header::HOST, shop.to_string())
        .header(header::CONTENT_TYPE, "application/json")
        .header("idempotency-key", format!("\"{}\"", order.reference))
        .body(Full::from(serde_json::to_vec(order).ok()?))
        .ok()
}

fn retry_after(headers: &HeaderMap) -> Duration {
    let seconds =
        headers.get(header::RETRY_AFTER).and_then(|wait| wait.to_str().ok()?.parse().ok());
    Duration::from_secs(seconds.unwrap_or(0))
}
