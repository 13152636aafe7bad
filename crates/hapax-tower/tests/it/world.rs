//! A payment service behind the layer, on a memory store whose wire can be cut.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::any,
};
use bytes::Bytes;
use hapax_core::{
    Attempt, Note, Noted, OperationId, Policy, Record, Recovery, RetainFrom, Retention, Salt,
    Store, StoreError, StoredStep, Timestamp,
    clock::{ClockMark, ClockReading},
    incarnation::{Incarnation, IncarnationChange, IncarnationReading},
    memory,
    store::{Filter, Listed, Loaded, Page, Purged, Summary, Write, Written},
};
use hapax_engine::{Engine, Options};
use hapax_tower::{IdempotencyLayer, Protection, Routes, Tenancy, Treatment};
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use tokio::{sync::Semaphore, time::Instant};
use tower::ServiceExt;

/// What the service does, decided by the last part of the path.
pub(crate) struct Service {
    /// How often it was begun.
    pub(crate) runs: AtomicUsize,
    /// Requests to `/slow` wait until there is one of these.
    pub(crate) go: Semaphore,
    /// What it was sent last.
    pub(crate) last: std::sync::Mutex<Option<HeaderMap>>,
    /// What it answers under `/made`.
    pub(crate) make: Box<dyn Fn() -> Response + Send + Sync>,
}

pub(crate) struct World {
    pub(crate) store: Wire,
    pub(crate) engine: Engine,
    pub(crate) service: Arc<Service>,
    pub(crate) app: Router,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(Protection::default())
    }

    pub(crate) fn with(protection: Protection) -> Self {
        Self::build(protection, Tenancy::credential(), || "made".into_response())
    }

    /// A service whose answer under `/made` is this.
    pub(crate) fn making(make: impl Fn() -> Response + Send + Sync + 'static) -> Self {
        Self::build(Protection::default(), Tenancy::credential(), make)
    }

    pub(crate) fn build(
        protection: Protection,
        tenancy: Tenancy,
        make: impl Fn() -> Response + Send + Sync + 'static,
    ) -> Self {
        let store = Wire::new();
        let options = Options { seed: Some(7), ..Options::default() };
        let engine = Engine::start(store.clone(), options);
        let routes = Routes::new(Treatment::Protect(protection)).unwrap();
        let layer = IdempotencyLayer::new(engine.clone(), tenancy, routes).unwrap();
        let service = service(make);
        let app = router(&service).layer(layer);
        Self { store, engine, service, app }
    }

    pub(crate) fn runs(&self) -> usize {
        self.service.runs.load(Relaxed)
    }

    pub(crate) async fn send(
        &self,
        request: http::request::Builder,
        body: impl AsRef<[u8]>,
    ) -> Answer {
        send(&self.app, request, body).await
    }

    pub(crate) async fn pay(&self, key: &str, body: &str) -> Answer {
        self.send(post("/pay").header("idempotency-key", key), body).await
    }

    /// A request under way, in a task of its own.
    pub(crate) fn start(
        &self,
        request: http::request::Builder,
        body: &'static str,
    ) -> tokio::task::JoinHandle<Answer> {
        let app = self.app.clone();
        tokio::spawn(async move { send(&app, request, body).await })
    }

    /// Waits until the service was begun so often.
    pub(crate) async fn begun(&self, runs: usize) {
        while self.runs() < runs {
            tokio::task::yield_now().await;
        }
    }
}

pub(crate) fn service(make: impl Fn() -> Response + Send + Sync + 'static) -> Arc<Service> {
    Arc::new(Service {
        runs: AtomicUsize::new(0),
        go: Semaphore::new(0),
        last: std::sync::Mutex::default(),
        make: Box::new(make),
    })
}

pub(crate) fn router(service: &Arc<Service>) -> Router {
    Router::new().fallback(any(serve)).with_state(Arc::clone(service))
}

async fn serve(State(service): State<Arc<Service>>, request: Request) -> Response {
    let run = service.runs.fetch_add(1, Relaxed) + 1;
    let (parts, body) = request.into_parts();
    assert!(
        parts.headers.contains_key("hapax-fence") == parts.extensions.get::<Attempt>().is_some()
    );
    *service.last.lock().unwrap() = Some(parts.headers);
    let body = body.collect().await.unwrap().to_bytes();
    let name = parts.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
    match name.as_str() {
        "slow" => service.go.acquire().await.unwrap().forget(),
        "panic" => panic!("the handler gave up"),
        "made" => return (service.make)(),
        _ => {}
    }
    let status = name.parse().map_or(StatusCode::CREATED, |s| StatusCode::from_u16(s).unwrap());
    let text = format!("run {run} of {} bytes", body.len());
    (status, [("x-run", run.to_string())], text).into_response()
}

/// What a client was told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    /// The code of a refusal that is a problem document in every respect.
    pub(crate) fn problem(&self) -> String {
        let document = self.json();
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{document}");
        assert_eq!(document["status"], self.status);
        let code = document["code"].as_str().unwrap().to_owned();
        let page = document["type"].as_str().unwrap();
        assert!(page.ends_with(&format!("/{code}")));
        assert_eq!(self.header("link").unwrap(), format!("<{page}>; rel=\"describedby\""));
        assert_eq!(self.header("hapax-refusal"), Some(code.as_str()));
        code
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(crate) fn is_replay(&self) -> bool {
        self.header("idempotent-replayed") == Some("true")
    }

    pub(crate) fn check(&self, status: u16, code: &str) {
        assert_eq!((self.status, self.problem().as_str()), (status, code));
    }
}

pub(crate) async fn send(
    app: &Router,
    request: http::request::Builder,
    body: impl AsRef<[u8]>,
) -> Answer {
    let request = request.body(axum::body::Body::from(body.as_ref().to_vec())).unwrap();
    let response = app.clone().oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: parts.status.as_u16(), headers: parts.headers, body }
}

/// A request with the usual credential.
pub(crate) fn post(path: &str) -> http::request::Builder {
    http::Request::post(path).header("authorization", "Bearer alice")
}

/// The usual key on another path.
pub(crate) fn keyed(path: &str) -> http::request::Builder {
    post(path).header("idempotency-key", "k-1")
}

pub(crate) fn policy(recovery: Recovery) -> Policy {
    let retention = Retention {
        window: Duration::from_secs(3600),
        from: RetainFrom::Creation,
        tombstone: Duration::ZERO,
    };
    Policy::new(Duration::from_secs(30), retention, recovery).unwrap()
}

/// The memory store behind a wire that tests can cut.
#[derive(Debug, Clone)]
pub(crate) struct Wire {
    pub(crate) memory: memory::Store,
    away: Arc<AtomicBool>,
    loses_answers: Arc<AtomicBool>,
    /// How long a commit takes, in milliseconds.
    takes: Arc<AtomicU64>,
}

impl Wire {
    pub(crate) fn new() -> Self {
        let began = Instant::now();
        let clock = move || Timestamp::from_micros(1_800_000_000_000_000).plus(began.elapsed());
        let memory = memory::Store::new(Salt::from_bytes([9; 32]), clock);
        Self { memory, away: Arc::default(), loses_answers: Arc::default(), takes: Arc::default() }
    }

    /// From now on the store refuses, or does so no more.
    pub(crate) fn away(&self, away: bool) {
        self.away.store(away, Relaxed);
    }

    /// From now on commits are written and not confirmed, or are again.
    pub(crate) fn loses_answers(&self, loses: bool) {
        self.loses_answers.store(loses, Relaxed);
    }

    /// From now on every commit takes so long.
    pub(crate) fn takes(&self, millis: u64) {
        self.takes.store(millis, Relaxed);
    }

    /// Everything stored.
    pub(crate) async fn all(&self) -> Vec<Summary> {
        let page = Page { after: None, limit: 1000 };
        let listed = self.memory.list(Filter::default(), page).await.unwrap();
        listed.into_iter().map(|listed| listed.summary.unwrap()).collect()
    }
}

impl Store for Wire {
    fn salt(&self) -> Salt {
        self.memory.salt()
    }

    fn lanes(&self) -> usize {
        1
    }

    async fn commit(&self, batch: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        let takes = self.takes.load(Relaxed);
        if takes > 0 {
            tokio::time::sleep(Duration::from_millis(takes)).await;
        }
        if self.away.load(Relaxed) {
            return vec![Err(StoreError::unavailable("cut")); batch.len()];
        }
        if self.loses_answers.load(Relaxed) {
            let lost = vec![Err(StoreError::unconfirmed("answer lost")); batch.len()];
            self.memory.commit(batch).await;
            return lost;
        }
        self.memory.commit(batch).await
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        if self.away.load(Relaxed) {
            return ids.iter().map(|_| Err(StoreError::unavailable("cut"))).collect();
        }
        self.memory.load(ids).await
    }

    async fn steps(&self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        self.memory.steps(id).await
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.memory.overdue(limit).await
    }

    async fn purge(&self, limit: usize) -> Result<Purged, StoreError> {
        self.memory.purge(limit).await
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        self.memory.clock().await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        self.memory.keep_clock(mark).await
    }

    async fn incarnation(&self) -> Result<IncarnationReading, StoreError> {
        self.memory.incarnation().await
    }

    async fn keep_incarnation(&self, change: IncarnationChange) -> Result<bool, StoreError> {
        self.memory.keep_incarnation(change).await
    }

    fn admit(&self, incarnation: &Incarnation) {
        self.memory.admit(incarnation);
    }

    async fn list(&self, filter: Filter, page: Page) -> Result<Vec<Listed>, StoreError> {
        self.memory.list(filter, page).await
    }

    async fn withdraw(&self, attempt: Attempt) -> Result<bool, StoreError> {
        self.memory.withdraw(attempt).await
    }

    async fn note(&self, note: Note) -> Result<(), StoreError> {
        self.memory.note(note).await
    }

    async fn notes(&self, id: OperationId, limit: usize) -> Result<Vec<Noted>, StoreError> {
        self.memory.notes(id, limit).await
    }

    async fn watch(&self, _: OperationId) {
        std::future::pending().await
    }
}
