//! A careless payments API: it charges every request it gets, and does not always say so.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::json;
use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::sleep};

use super::{
    ledger::{Charge, ChargeLedger},
    order::PaymentOrder,
    plan::{ApiReply, PlannedPayment},
    traffic::TrafficLog,
};

/// Where the API can be asked whether it has charged something.
pub(super) const BY_REFERENCE: &str = "/payments/by-reference/";
/// Largest body of a request, in bytes.
const BODY_BYTES_MAX: usize = 16 << 10;
/// Most payments that are listed.
const LISTED_MAX: usize = 100;

/// The API, until it is dropped.
#[derive(Debug)]
pub(super) struct Api {
    pub(super) address: SocketAddr,
    desk: Arc<ApiState>,
    _serving: JoinSet<()>,
}

/// What every connection shares.
#[derive(Debug)]
struct ApiState {
    ledger: Arc<ChargeLedger>,
    traffic: Arc<TrafficLog>,
    answers: Mutex<HashMap<String, Vec<ApiReply>>>,
    /// Charges that are made and not yet answered.
    withheld: watch::Sender<usize>,
}

impl Api {
    /// Serves on a free port of this machine.
    pub(super) async fn start(
        ledger: Arc<ChargeLedger>,
        traffic: Arc<TrafficLog>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let (answers, withheld) = (Mutex::default(), watch::Sender::new(0));
        let desk = Arc::new(ApiState { ledger, traffic, answers, withheld });
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::clone(&desk)));
        Ok(Self { address, desk, _serving: serving })
    }

    /// From now on, answers the requests for these payments as planned.
    pub(super) fn plan_answers<'a>(&self, payments: impl IntoIterator<Item = &'a PlannedPayment>) {
        let mut answers = self.desk.answers.lock().unwrap_or_else(PoisonError::into_inner);
        for PlannedPayment { order, answers: planned, .. } in payments {
            answers.insert(order.reference.clone(), planned.clone());
        }
    }

    /// How many charges are made and not yet answered, as it changes.
    pub(super) fn withheld(&self) -> watch::Receiver<usize> {
        self.desk.withheld.subscribe()
    }
}

async fn serve(listener: TcpListener, desk: Arc<ApiState>) {
    let mut connections = JoinSet::new();
    while let Ok((connection, _)) = listener.accept().await {
        let desk = Arc::clone(&desk);
        connections.spawn(async move {
            let service = service_fn(|request| desk.answer(request));
            // A connection that breaks is what this API is for.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(connection), service).await;
        });
        while connections.try_join_next().is_some() {}
    }
}

/// The connection ends here.
#[derive(Debug, thiserror::Error)]
#[error("the connection is dropped")]
struct Dropped;

impl ApiState {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Dropped> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        match (&parts.method, path) {
            (&Method::POST, "/payments") => {
                let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
                self.pay(&parts.headers, &body.map_err(|_| Dropped)?.to_bytes()).await
            }
            (&Method::GET, "/payments") => {
                let payments = self.ledger.newest(LISTED_MAX);
                Ok(json(StatusCode::OK, &json!({ "payments": payments })))
            }
            (&Method::GET, _) => Ok(self.look_up(path)),
            _ => Ok(refusal(StatusCode::NOT_FOUND, "there is only POST /payments to do here")),
        }
    }

    /// Charges first, then answers as planned: a late answer is late news of a charge.
    async fn pay(
        &self,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<Response<Full<Bytes>>, Dropped> {
        let order = match PaymentOrder::parse(body) {
            Ok(order) => order,
            Err(why) => return Ok(refusal(StatusCode::BAD_REQUEST, &why)),
        };
        let reference = order.reference.clone();
        let answering = self.answering(&reference);
        let charge = self.ledger.charge(order);
        let fence = headers.get("hapax-fence").and_then(|fence| fence.to_str().ok());
        let fence = fence.map(|fence| format!(", sent under fence {fence}")).unwrap_or_default();
        self.traffic.shop(&reference, format!("charged it as {}{fence}", charge.id));
        match answering {
            None => {}
            Some(ApiReply::Promptly(takes)) => sleep(takes).await,
            Some(ApiReply::Late(takes)) => {
                let _withheld = Withheld::new(&self.withheld);
                sleep(takes).await;
                self.traffic.shop(&reference, format!("answered late, after {takes:?}"));
            }
            Some(ApiReply::Never) => {
                self.traffic.shop(&reference, "dropped the connection without answering".into());
                return Err(Dropped);
            }
        }
        Ok(receipt(StatusCode::CREATED, &charge))
    }

    /// What was planned for the next request for this reference.
    fn answering(&self, reference: &str) -> Option<ApiReply> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        answers.get(reference)?.get(self.ledger.times(reference)).copied()
    }

    /// Whether a payment was charged: the question the gateway asks after a crash.
    fn look_up(&self, path: &str) -> Response<Full<Bytes>> {
        let Some(reference) = path.strip_prefix(BY_REFERENCE) else {
            return refusal(StatusCode::NOT_FOUND, "there is only POST /payments to do here");
        };
        let reference = percent_decode_str(reference).decode_utf8_lossy();
        let charge = self.ledger.by_reference(&reference);
        // Strangers may ask about anything; only what was asked for once is worth a note.
        if charge.is_some() || self.traffic.counts(&reference).0 > 0 {
            let told = charge
                .as_ref()
                .map_or_else(|| "no".to_owned(), |charge| format!("yes, {}", charge.id));
            self.traffic.shop(&reference, format!("was asked whether it was charged: {told}"));
        }
        match charge {
            Some(charge) => receipt(StatusCode::OK, &charge),
            None => refusal(StatusCode::NOT_FOUND, "nothing was charged under this reference"),
        }
    }
}

/// A charge that somebody does not know about yet.
struct Withheld<'a>(&'a watch::Sender<usize>);

impl<'a> Withheld<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Withheld<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

fn receipt(status: StatusCode, charge: &Charge) -> Response<Full<Bytes>> {
    json(status, charge)
}

fn refusal(status: StatusCode, why: &str) -> Response<Full<Bytes>> {
    json(status, &json!({ "error": why }))
}

fn json(status: StatusCode, value: &impl Serialize) -> Response<Full<Bytes>> {
    // Names, numbers and texts can always be written.
    let text = serde_json::to_string(value).unwrap_or_default();
    let mut response = Response::new(Full::from(text + "\n"));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
