//! An API that writes down every effect.

use std::{
    collections::HashMap,
    convert::Infallible,
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, service::service_fn};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
};
use rustls::ServerConfig;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpListener,
    sync::watch,
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

/// How the API behaves.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Behaviour {
    /// Whether it answers a key it has seen with the first answer, without another effect.
    pub(crate) deduplicates: bool,
    /// How long it takes before the effect, which it has whether anybody waits for it or not.
    pub(crate) thinks: Duration,
    /// How long it takes after the effect.
    pub(crate) takes: Duration,
    /// How many receipts it wrote before this ledger began.
    pub(crate) receipts_before: usize,
}

/// An API on loopback: POST has an effect, `GET /by-key/{key}` says whether there was one.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    ledger: Arc<Ledger>,
    serving: JoinHandle<()>,
}

#[derive(Default)]
struct Ledger {
    effects: Mutex<HashMap<String, Vec<Bytes>>>,
    requests: Mutex<Vec<String>>,
    /// Whether answers are held back, after their effect.
    silent: watch::Sender<bool>,
}

impl Upstream {
    pub(crate) async fn start(behaviour: Behaviour) -> Self {
        Self::start_with(behaviour, None).await
    }

    /// Behind TLS.
    pub(crate) async fn start_secured(behaviour: Behaviour, tls: Arc<ServerConfig>) -> Self {
        Self::start_with(behaviour, Some(TlsAcceptor::from(tls))).await
    }

    async fn start_with(behaviour: Behaviour, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, ledger) = (listener.local_addr().unwrap(), Arc::<Ledger>::default());
        let serving = tokio::spawn(serve(listener, tls, Arc::clone(&ledger), behaviour));
        Self { address, ledger, serving }
    }

    /// How often this key had an effect.
    pub(crate) fn effects(&self, key: &str) -> usize {
        self.ledger.effects.lock().unwrap().get(key).map_or(0, Vec::len)
    }

    /// Effects over all keys.
    pub(crate) fn total(&self) -> usize {
        self.ledger.effects.lock().unwrap().values().map(Vec::len).sum()
    }

    /// What this key's effects were answered with.
    pub(crate) fn receipts(&self, key: &str) -> Vec<Bytes> {
        self.ledger.effects.lock().unwrap().get(key).cloned().unwrap_or_default()
    }

    /// The keys that had more than one effect.
    pub(crate) fn twice(&self) -> Vec<String> {
        let effects = self.ledger.effects.lock().unwrap();
        let twice = effects.iter().filter(|(_, effects)| effects.len() > 1);
        twice.map(|(key, _)| key.clone()).collect()
    }

    /// Keeps every answer back, or lets them go.
    pub(crate) fn silence(&self, silent: bool) {
        self.ledger.silent.send_replace(silent);
    }

    /// The heads of all requests it has seen, as one text each.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.ledger.requests.lock().unwrap().clone()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    ledger: Arc<Ledger>,
    behaviour: Behaviour,
) {
    while let Ok((connection, _)) = listener.accept().await {
        let (tls, ledger) = (tls.clone(), Arc::clone(&ledger));
        tokio::spawn(async move {
            match tls {
                None => speak(connection, ledger, behaviour).await,
                Some(tls) => {
                    // A gateway that does not trust the certificate hangs up.
                    if let Ok(connection) = tls.accept(connection).await {
                        speak(connection, ledger, behaviour).await;
                    }
                }
            }
        });
    }
}

/// Speaks whichever protocol the connection begins with.
async fn speak<I>(connection: I, ledger: Arc<Ledger>, behaviour: Behaviour)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| answer(Arc::clone(&ledger), behaviour, request));
    let server = auto::Builder::new(TokioExecutor::new());
    let _ = server.serve_connection(TokioIo::new(connection), service).await;
}

async fn answer(
    ledger: Arc<Ledger>,
    behaviour: Behaviour,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (parts, body) = request.into_parts();
    let head = format!("{} {} {:?} {:?}", parts.method, parts.uri, parts.headers, parts.version);
    ledger.requests.lock().unwrap().push(head);
    if parts.method.is_safe() {
        let key = parts.uri.path().strip_prefix("/by-key/").unwrap_or_default();
        let known = ledger.effects.lock().unwrap().get(key).map(|effects| effects[0].clone());
        return Ok(said(if known.is_some() { 201 } else { 404 }, known.unwrap_or_default()));
    }
    let Ok(body) = body.collect().await else { return Ok(said(400, Bytes::new())) };
    let key = parts.headers.get("idempotency-key");
    let key = key.map_or("", |key| key.to_str().unwrap().trim_matches('"')).to_owned();
    let body = body.to_bytes();
    let working = tokio::spawn({
        let ledger = Arc::clone(&ledger);
        async move {
            tokio::time::sleep(behaviour.thinks).await;
            ledger.take_effect(key, &body, behaviour)
        }
    });
    let receipt = working.await.unwrap();
    tokio::time::sleep(behaviour.takes).await;
    let _ = ledger.silent.subscribe().wait_for(|silent| !silent).await;
    Ok(said(201, receipt))
}

impl Ledger {
    fn take_effect(&self, key: String, body: &Bytes, behaviour: Behaviour) -> Bytes {
        let mut effects = self.effects.lock().unwrap();
        let all: usize = effects.values().map(Vec::len).sum();
        let of_key = effects.entry(key).or_default();
        if of_key.is_empty() || !behaviour.deduplicates {
            let body = String::from_utf8_lossy(body);
            let number = behaviour.receipts_before + all + 1;
            of_key.push(format!("receipt {number} for {body}").into());
        }
        of_key.last().unwrap().clone()
    }
}

fn said(status: u16, body: Bytes) -> Response<Full<Bytes>> {
    let answer = Response::builder().status(status).header("content-type", "text/plain");
    answer.body(Full::new(body)).unwrap()
}
