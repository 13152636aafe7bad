//! One try: a connection of its own, a request, and the end of patience.

use std::{net::SocketAddr, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::{
    net::TcpStream,
    task::JoinSet,
    time::{Instant, timeout},
};

use super::{order::PaymentOrder, traffic::Storefront};

/// Largest answer that is read, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 10;

/// What a client knows after a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TryResult {
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

/// A complete answer.
#[derive(Debug)]
pub(super) struct PaymentAnswer {
    pub(super) status: StatusCode,
    pub(super) replayed: bool,
    pub(super) body: String,
    retry_after: Duration,
}

/// Asks for a payment once. The key is the order's reference.
pub(super) async fn ask(shop: &Storefront, order: &PaymentOrder, patience: Duration) -> TryResult {
    send(shop, order, patience).await.map_or(TryResult::Nothing, |answer| answer.heard())
}

/// The same, for whoever wants to read the answer; `None` if none came.
pub(super) async fn send(
    shop: &Storefront,
    order: &PaymentOrder,
    patience: Duration,
) -> Option<PaymentAnswer> {
    let began = Instant::now();
    let sent = shop.traffic.sent(&order.reference);
    let answer = timeout(patience, exchange(shop.address, order)).await;
    let took = began.elapsed().as_millis();
    let (told, answer) = match answer {
        Ok(Some(answer)) => (format!("{}, after {took} ms", answer.told()), Some(answer)),
        Ok(None) => (format!("no answer: the connection broke after {took} ms"), None),
        Err(_) => (format!("no answer: its client gave up after {took} ms"), None),
    };
    let replayed = answer.as_ref().is_some_and(|answer| answer.replayed);
    shop.traffic.heard(&order.reference, &sent, &told, replayed);
    answer
}

impl PaymentAnswer {
    fn heard(&self) -> TryResult {
        match self.status {
            status if status.is_success() => TryResult::Paid { replayed: self.replayed },
            StatusCode::CONFLICT => TryResult::Busy { retry_after: self.retry_after },
            StatusCode::UNPROCESSABLE_ENTITY => TryResult::Reused,
            _ => TryResult::Failure,
        }
    }

    /// What it means, in words.
    pub(super) fn told(&self) -> String {
        let status = self.status.as_u16();
        match self.heard() {
            TryResult::Paid { replayed: false } => format!("{status}, paid"),
            TryResult::Paid { replayed: true } => format!("{status}, replayed from the record"),
            TryResult::Busy { .. } => format!("{status}, it is being worked on"),
            TryResult::Reused => format!("{status}, the key belongs to another request"),
            TryResult::Failure | TryResult::Nothing => format!("{status}, nobody can tell yet"),
        }
    }
}

/// Dropped early, it takes its connection with it, as a client does that dies.
async fn exchange(shop: SocketAddr, order: &PaymentOrder) -> Option<PaymentAnswer> {
    let stream = TcpStream::connect(shop).await.ok()?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    let mut driven = JoinSet::new();
    driven.spawn(connection);
    let answer = sender.send_request(request(shop, order)?).await.ok()?;
    let (parts, body) = answer.into_parts();
    let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.ok()?;
    Some(PaymentAnswer {
        status: parts.status,
        replayed: parts.headers.contains_key("idempotent-replayed"),
        body: String::from_utf8_lossy(&body.to_bytes()).into_owned(),
        retry_after: retry_after(&parts.headers),
    })
}

fn request(shop: SocketAddr, order: &PaymentOrder) -> Option<Request<Full<Bytes>>> {
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
