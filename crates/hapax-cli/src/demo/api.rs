//! A careless payments API: it charges every request it gets, and does not always say so.

use std::{collections::HashMap, io, net::SocketAddr, sync::Arc};

use bytes::Bytes;
use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE},
};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use serde::Serialize;
use serde_json::json;
use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::sleep};

use super::{
    ledger::{Charge, Ledger},
    order::Order,
    page::{self, Shown},
    plan::{Answering, Plan},
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
    withheld: watch::Receiver<usize>,
    _serving: JoinSet<()>,
}

/// What every connection shares.
struct Desk {
    ledger: Arc<Ledger>,
    shown: Vec<Shown>,
    answers: HashMap<String, Vec<Answering>>,
    /// Charges that are made and not yet answered.
    withheld: watch::Sender<usize>,
}

impl Api {
    /// Serves on a free port of this machine, answering as planned. Its page shows these ledgers.
    pub(super) async fn start(
        ledger: Arc<Ledger>,
        plan: &Plan,
        shown: Vec<Shown>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let answers = plan.payments.iter();
        let answers =
            answers.map(|payment| (payment.order.reference.clone(), payment.answers.clone()));
        let (withheld, watched) = watch::channel(0);
        let desk = Desk { ledger, shown, answers: answers.collect(), withheld };
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::new(desk)));
        Ok(Self { address, withheld: watched, _serving: serving })
    }

    /// How many charges are made and not yet answered, as it changes.
    pub(super) fn withheld(&self) -> watch::Receiver<usize> {
        self.withheld.clone()
    }
}

async fn serve(listener: TcpListener, desk: Arc<Desk>) {
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

impl Desk {
    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Dropped> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        match (&parts.method, path) {
            (&Method::POST, "/payments") => {
                let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
                self.pay(&body.map_err(|_| Dropped)?.to_bytes()).await
            }
            (&Method::GET, "/") => Ok(html(page::render(&self.shown, &self.ledger))),
            (&Method::GET, "/payments") => {
                let payments = self.ledger.newest(LISTED_MAX);
                Ok(json(StatusCode::OK, &json!({ "payments": payments })))
            }
            (&Method::GET, _) => Ok(self.look_up(path)),
            _ => Ok(refusal(StatusCode::NOT_FOUND, "there is only POST /payments to do here")),
        }
    }

    /// Charges first, then answers as planned: a late answer is late news of a charge.
    async fn pay(&self, body: &[u8]) -> Result<Response<Full<Bytes>>, Dropped> {
        let order = match Order::parse(body) {
            Ok(order) => order,
            Err(why) => return Ok(refusal(StatusCode::BAD_REQUEST, &why)),
        };
        let times = self.ledger.times(&order.reference);
        let answers = self.answers.get(&order.reference);
        let answering = answers.and_then(|answers| answers.get(times)).copied();
        let charge = self.ledger.charge(order);
        match answering {
            None => {}
            Some(Answering::Promptly(takes)) => sleep(takes).await,
            Some(Answering::Late(takes)) => {
                let _withheld = Withheld::new(&self.withheld);
                sleep(takes).await;
            }
            Some(Answering::Never) => return Err(Dropped),
        }
        Ok(receipt(StatusCode::CREATED, &charge))
    }

    /// Whether a payment was charged: the question the gateway asks after a crash.
    fn look_up(&self, path: &str) -> Response<Full<Bytes>> {
        let reference = path.strip_prefix(BY_REFERENCE).unwrap_or_default();
        let reference = percent_decode_str(reference).decode_utf8_lossy();
        match self.ledger.by_reference(&reference) {
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

fn html(page: String) -> Response<Full<Bytes>> {
    const KIND: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
    let mut response = Response::new(Full::from(page));
    response.headers_mut().insert(CONTENT_TYPE, KIND);
    let policy = HeaderValue::from_static(page::SECURITY_POLICY);
    response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    response
}
