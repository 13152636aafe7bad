//! A server on loopback that answers as it is told, and remembers what it was sent.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    extract::Request,
    response::{IntoResponse, Response},
};
use hapax_client::{
    Client, ClientBuilder, Proxies, ReqwestOptions, RetryOptions,
    journal::{Journal, JournalOptions},
};
use hapax_core::retry::{Backoff, Jitter, Schedule};
use http::{HeaderMap, StatusCode};
use tokio::net::TcpListener;

/// What one request was.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) headers: HeaderMap,
}

impl Seen {
    /// The key it was sent with, quotes included.
    pub(crate) fn key(&self) -> &str {
        let key = self.headers.get("idempotency-key").expect("a key");
        key.to_str().expect("a key of text")
    }
}

/// A server that remembers what it was sent.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Server {
    /// Answers the request of each number, from 0.
    pub(crate) async fn start<F>(answer: impl Fn(usize) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Response> + Send,
    {
        Self::publishing(None, answer).await
    }

    /// The same, and says for how long it remembers keys.
    pub(crate) async fn publishing<F>(
        window: Option<Duration>,
        answer: impl Fn(usize) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Response> + Send,
    {
        let (seen, answer) = (Arc::<Mutex<Vec<Seen>>>::default(), Arc::new(answer));
        let log = Arc::clone(&seen);
        let app = Router::new().fallback(move |request: Request| {
            let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
            async move {
                let path = request.uri().path().to_owned();
                if path.starts_with("/.well-known") {
                    return published(window);
                }
                let number = {
                    let mut log = log.lock().expect("nobody panicked");
                    log.push(Seen { headers: request.headers().clone() });
                    log.len() - 1
                };
                answer(number).await
            }
        });
        Self { url: serve(app).await, seen }
    }

    pub(crate) fn at(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// Everything it was sent, except for questions about its policy.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().expect("nobody panicked").clone()
    }
}

fn published(window: Option<Duration>) -> Response {
    let Some(window) = window else { return StatusCode::NOT_FOUND.into_response() };
    let policy = serde_json::json!({
        "routes": [],
        "otherwise": { "protected": true, "retention_seconds": window.as_secs() },
    });
    axum::Json(policy).into_response()
}

/// Serves an application until the test ends, and says where.
pub(crate) async fn serve(app: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move { axum::serve(listener, app).await });
    url
}

/// Three attempts, shortly after each other.
pub(crate) fn quick() -> RetryOptions {
    let (base, cap) = (Duration::from_millis(1), Duration::from_millis(5));
    RetryOptions {
        schedule: Schedule::new(Backoff { jitter: Jitter::Full, base, cap }, 3)
            .expect("a schedule"),
        deadline: Duration::from_secs(4),
        attempt_timeout: Duration::from_millis(500),
        ..RetryOptions::default()
    }
}

/// A client that tries quickly, and never through a proxy.
pub(crate) fn builder() -> ClientBuilder {
    let connections = ReqwestOptions { proxies: Proxies::Never, ..ReqwestOptions::default() };
    Client::builder().retry(quick()).connections(connections)
}

/// The same with a journal in this directory.
pub(crate) fn journalling(directory: &Path) -> Client {
    builder().journal(directory.join("client.db")).build().expect("a client")
}

/// The same with a journal that is opened so.
pub(crate) fn journalling_with(directory: &Path, options: JournalOptions) -> Client {
    let journal = Journal::open(directory.join("client.db"), options).expect("a journal");
    builder().journal_opened(journal).build().expect("a client")
}

/// An answer of a status and a text.
pub(crate) fn answer(status: u16, text: &'static str) -> Response {
    (StatusCode::from_u16(status).expect("a status"), text).into_response()
}
