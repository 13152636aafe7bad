//! Somebody who receives webhooks.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use tokio::{net::TcpListener, task::JoinHandle};

/// Takes signed requests, each id once, and refuses one payload if it is told to.
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    book: Arc<Book>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct Book {
    refused: Mutex<String>,
    taken: Mutex<Vec<(String, String)>>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into()).await
    }

    pub(crate) async fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let (address, book) = (listener.local_addr().unwrap(), Arc::<Book>::default());
        let serving = tokio::spawn(serve(listener, Arc::clone(&book)));
        Self { address, book, serving }
    }

    /// Refuses this payload from now on, and nothing else.
    pub(crate) fn refuse(&self, payload: &str) {
        payload.clone_into(&mut self.book.refused.lock().unwrap());
    }

    /// The payloads it took, in order.
    pub(crate) fn taken(&self) -> Vec<String> {
        self.book.taken.lock().unwrap().iter().map(|(_, payload)| payload.clone()).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(listener: TcpListener, book: Arc<Book>) {
    while let Ok((socket, _)) = listener.accept().await {
        let book = Arc::clone(&book);
        tokio::spawn(async move {
            let service = service_fn(move |request| receive(request, Arc::clone(&book)));
            let connection = auto::Builder::new(TokioExecutor::new());
            // A sender that goes away is nobody's fault.
            let _ = connection.serve_connection(TokioIo::new(socket), service).await;
        });
    }
}

async fn receive(
    request: Request<Incoming>,
    book: Arc<Book>,
) -> Result<Response<Full<bytes::Bytes>>, Infallible> {
    let header = |name| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
    let (id, signature) = (header("webhook-id").unwrap(), header("webhook-signature"));
    assert!(signature.unwrap().starts_with("v1,"), "it is signed");
    assert_eq!(header("idempotency-key").map(|key| key.replace('"', "")), Some(id.clone()));
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let payload = String::from_utf8(body.to_vec()).unwrap();
    let mut response = Response::new(Full::default());
    if *book.refused.lock().unwrap() == payload {
        *response.status_mut() = StatusCode::UNPROCESSABLE_ENTITY;
        return Ok(response);
    }
    let mut taken = book.taken.lock().unwrap();
    if !taken.iter().any(|(known, _)| *known == id) {
        taken.push((id, payload));
    }
    Ok(response)
}
