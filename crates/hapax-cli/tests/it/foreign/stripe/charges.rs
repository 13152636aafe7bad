//! An API of charges that plays Stripe's, without looking at keys.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};

use bytes::Bytes;
use http::{Request, Response, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::Semaphore, task::JoinHandle};

/// The API on loopback. What it does is said by the description of a charge.
pub(super) struct Charges {
    pub(super) address: SocketAddr,
    ledger: Arc<Ledger>,
    serving: JoinHandle<()>,
}

struct Ledger {
    made: AtomicUsize,
    /// Charges that wait do so until there is one of these.
    go: Semaphore,
}

impl Charges {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ledger = Arc::new(Ledger { made: AtomicUsize::new(0), go: Semaphore::new(0) });
        let serving = tokio::spawn(serve(listener, Arc::clone(&ledger)));
        Self { address, ledger, serving }
    }

    /// How many charges were made.
    pub(super) fn made(&self) -> usize {
        self.ledger.made.load(Relaxed)
    }

    /// Answers one charge that waits.
    pub(super) fn go_on(&self) {
        self.ledger.go.add_permits(1);
    }
}

impl Drop for Charges {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, ledger: Arc<Ledger>) {
    while let Ok((connection, _)) = listener.accept().await {
        let ledger = Arc::clone(&ledger);
        let service = service_fn(move |request| answer(Arc::clone(&ledger), request));
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(connection), service));
    }
}

/// An error closes the connection, which is no answer.
async fn answer(
    ledger: Arc<Ledger>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, io::Error> {
    let form = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let form = String::from_utf8_lossy(&form).into_owned();
    let does = form.split('&').find_map(|field| field.strip_prefix("description="));
    let charge = ledger.made.fetch_add(1, Relaxed) + 1;
    match does {
        Some("fail") => {
            let error = json!({ "type": "api_error", "code": "broken", "message": "It broke." });
            return Ok(said(500, &json!({ "error": error })));
        }
        Some("vanish") => return Err(io::Error::other("it vanished")),
        Some("wait") => ledger.go.acquire().await.unwrap().forget(),
        Some(_) | None => {}
    }
    Ok(said(200, &json!({ "id": format!("ch_{charge}"), "object": "charge" })))
}

fn said(status: u16, document: &Value) -> Response<Full<Bytes>> {
    let answer = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
    answer.body(Full::new(document.to_string().into())).unwrap()
}
