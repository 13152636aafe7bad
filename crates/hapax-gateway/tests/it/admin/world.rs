//! A gateway's admin side on a memory store that can be taken away.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
};

use axum::{
    Router,
    body::{Body, to_bytes},
    http::{HeaderMap, Request, StatusCode},
};
use bytes::Bytes;
use hapax_core::{
    Attempt, AttemptEnd, Body as StoredBody, Header, Key, Operation, OperationId, Outcome, Policy,
    Record, RequestParts, RunMode, Salt, Scope, Store, StoreError, StoredStep, Tenant, Timestamp,
    clock::{ClockMark, ClockReading},
    codec::Row,
    incarnation::{Incarnation, IncarnationChange, IncarnationReading},
    memory,
    note::{Note, Noted},
    outbox,
    store::{Filter, Listed, Loaded, Page, Purged, Write, Written},
};
use hapax_engine::{Admission, BeginRequest, Engine, Options, Permit};
use hapax_gateway::admin::{AdminAccess, AdminSecret, AdminState, Meters, router};
use serde_json::Value;
use tokio::time::Instant;
use tower::ServiceExt as _;

pub(crate) const TOKEN: &str = "open sesame";
/// The token that lets look and change nothing.
pub(crate) const READ_TOKEN: &str = "peek";
/// How browsers come to these tests.
pub(crate) const HOST: &str = "127.0.0.1:8081";

pub(crate) struct World {
    pub(crate) engine: Engine,
    pub(crate) store: Reachable,
    pub(crate) meters: Meters,
    pub(crate) draining: Arc<AtomicBool>,
    pub(crate) outbox: outbox::memory::Outbox,
    state: AdminState,
    router: Router,
}

impl World {
    pub(crate) fn new() -> Self {
        let read = AdminSecret::new(READ_TOKEN);
        Self::with_access(AdminAccess { operate: AdminSecret::new(TOKEN), read, ..access() })
    }

    pub(crate) fn with_token(token: Option<&str>) -> Self {
        Self::with_access(AdminAccess { operate: token.and_then(AdminSecret::new), ..access() })
    }

    pub(crate) fn with_access(access: AdminAccess) -> Self {
        let began = Instant::now();
        let clock = move || Timestamp::from_micros(1_800_000_000_000_000).plus(began.elapsed());
        let store = Reachable {
            store: memory::Store::new(Salt::from_bytes([9; 32]), clock),
            fate: Arc::default(),
        };
        let engine = Engine::start(store.clone(), Options { seed: Some(1), ..Options::default() });
        let (meters, draining) = (Meters::default(), Arc::default());
        let state = AdminState::new(engine.clone(), access, meters.clone(), Arc::clone(&draining));
        let outbox = outbox::memory::Outbox::new(clock);
        state.show_outbox(outbox.clone());
        state.show_configuration("listens at http://127.0.0.1:8080\nprotects http://a\n".into());
        let router = router(state.clone());
        Self { engine, store, meters, draining, outbox, state, router }
    }

    /// Keeps figures from now on, as a gateway does.
    pub(crate) fn keep_figures(&self) {
        tokio::spawn(self.state.clone().keep_figures());
    }

    /// A request as the dashboard sends it, with its cookie.
    pub(crate) fn by_page(method: &str, path: &str, cookie: &str) -> http::request::Builder {
        let request = Request::builder().method(method).uri(path).header("host", HOST);
        let request = request.header("sec-fetch-site", "same-origin").header("cookie", cookie);
        match method {
            "GET" => request,
            _ => request.header("origin", format!("http://{HOST}")).header("hapax-dashboard", "1"),
        }
    }

    /// Signs in with this token; the cookie.
    pub(crate) async fn sign_in(&self, token: &str) -> String {
        let body = serde_json::json!({ "token": token }).to_string();
        let request = Self::by_page("POST", "/session", "").body(Body::from(body)).unwrap();
        let answer = self.send(request).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        answer.header("set-cookie").split(';').next().unwrap().to_owned()
    }

    /// Sends it, and leaves the body of the answer to be read.
    pub(crate) async fn open(&self, request: Request<Body>) -> http::Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    /// Asks as somebody who has the token.
    pub(crate) async fn look(&self, path: &str) -> Answer {
        let request = Request::get(path).header("authorization", format!("Bearer {TOKEN}"));
        self.send(request.body(Body::empty()).unwrap()).await
    }

    /// Orders a change as somebody who has the token.
    pub(crate) async fn order(&self, path: &str, document: &Value) -> Answer {
        let request = Request::post(path).header("authorization", format!("Bearer {TOKEN}"));
        self.send(request.body(Body::from(document.to_string())).unwrap()).await
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.open(request).await;
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, 16 << 20).await.unwrap();
        let text = String::from_utf8(body.to_vec()).unwrap();
        Answer { status: parts.status, headers: parts.headers, text }
    }

    /// The right to run an operation of `acme`.
    pub(crate) async fn begin(&self, key: &str) -> Permit {
        match self.engine.begin(&ask(key)).await.unwrap() {
            Admission::Execute(permit) => permit,
            other => panic!("expected the right to run it, got {other:?}"),
        }
    }

    /// Runs an operation of `acme` to its end.
    pub(crate) async fn pay(&self, key: &str) {
        self.begin(key).await.settle(paid()).await.unwrap();
    }

    /// Leaves an operation of `acme` in doubt.
    pub(crate) async fn leave_in_doubt(&self, key: &str) {
        self.begin(key).await.settle(AttemptEnd::Unanswered).await.unwrap();
    }
}

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

fn access() -> AdminAccess {
    AdminAccess { address: HOST.parse().unwrap(), ..AdminAccess::default() }
}

pub(crate) fn paid() -> AttemptEnd {
    let kind = Header { name: "content-type".to_owned(), value: Bytes::from_static(b"text/plain") };
    let body = StoredBody::Kept(Bytes::from_static(b"paid"));
    AttemptEnd::completed(Outcome::new(201, vec![kind], body).unwrap())
}

pub(crate) fn ask(key: &str) -> BeginRequest<'static> {
    let operation = Operation::new(
        Tenant::parse("acme").unwrap(),
        Scope::parse("POST /payments").unwrap(),
        Key::parse(key).unwrap(),
    );
    let parts = RequestParts { body: b"pay 100", ..RequestParts::default() };
    let fingerprint = Salt::from_bytes([9; 32]).tenant_key(operation.tenant()).fingerprint(&parts);
    BeginRequest {
        operation,
        request: fingerprint.into(),
        mode: RunMode::Run { request: None },
        policy: Policy::default(),
    }
}

pub(crate) fn id(key: &str) -> OperationId {
    ask(key).operation.id()
}

/// A store that can be away, or say nothing at all.
#[derive(Debug, Clone)]
pub(crate) struct Reachable {
    store: memory::Store,
    fate: Arc<Fate>,
}

#[derive(Debug, Default)]
struct Fate {
    away: AtomicBool,
    silent: AtomicBool,
    full: AtomicBool,
    commits: AtomicUsize,
}

impl Reachable {
    pub(crate) fn be_away(&self) {
        self.fate.away.store(true, Relaxed);
    }

    /// From now on it reads and does not write, or both again.
    pub(crate) fn be_full(&self, full: bool) {
        self.fate.full.store(full, Relaxed);
    }

    /// How many batches it was given.
    pub(crate) fn commits(&self) -> usize {
        self.fate.commits.load(Relaxed)
    }

    pub(crate) fn be_silent(&self) {
        self.fate.silent.store(true, Relaxed);
    }

    pub(crate) fn tamper(&self, id: OperationId, change: impl FnOnce(&mut Row)) {
        self.store.tamper(id, change);
    }

    async fn reach(&self) -> Result<(), StoreError> {
        if self.fate.silent.load(Relaxed) {
            std::future::pending().await
        }
        if self.fate.away.load(Relaxed) {
            Err(StoreError::unavailable("unplugged"))
        } else {
            Ok(())
        }
    }
}

impl Store for Reachable {
    fn salt(&self) -> Salt {
        self.store.salt()
    }

    fn lanes(&self) -> usize {
        self.store.lanes()
    }

    async fn commit(&self, batch: Vec<Write>) -> Vec<Result<Written, StoreError>> {
        self.fate.commits.fetch_add(1, Relaxed);
        match self.reach().await {
            Ok(()) if self.fate.full.load(Relaxed) => {
                vec![Err(StoreError::unavailable("no space left")); batch.len()]
            }
            Ok(()) => self.store.commit(batch).await,
            Err(error) => vec![Err(error); batch.len()],
        }
    }

    async fn load(&self, ids: Vec<OperationId>) -> Vec<Result<Loaded, StoreError>> {
        match self.reach().await {
            Ok(()) => self.store.load(ids).await,
            Err(error) => ids.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn steps(&self, id: OperationId) -> Result<Vec<StoredStep>, StoreError> {
        self.reach().await?;
        self.store.steps(id).await
    }

    async fn overdue(&self, limit: usize) -> Result<Vec<Record>, StoreError> {
        self.reach().await?;
        self.store.overdue(limit).await
    }

    async fn purge(&self, limit: usize) -> Result<Purged, StoreError> {
        self.reach().await?;
        self.store.purge(limit).await
    }

    async fn clock(&self) -> Result<ClockReading, StoreError> {
        self.reach().await?;
        self.store.clock().await
    }

    async fn keep_clock(&self, mark: ClockMark) -> Result<(), StoreError> {
        self.reach().await?;
        self.store.keep_clock(mark).await
    }

    async fn incarnation(&self) -> Result<IncarnationReading, StoreError> {
        self.reach().await?;
        self.store.incarnation().await
    }

    async fn keep_incarnation(&self, change: IncarnationChange) -> Result<bool, StoreError> {
        self.reach().await?;
        self.store.keep_incarnation(change).await
    }

    fn admit(&self, incarnation: &Incarnation) {
        self.store.admit(incarnation);
    }

    async fn list(&self, filter: Filter, page: Page) -> Result<Vec<Listed>, StoreError> {
        self.reach().await?;
        self.store.list(filter, page).await
    }

    async fn withdraw(&self, attempt: Attempt) -> Result<bool, StoreError> {
        self.reach().await?;
        self.store.withdraw(attempt).await
    }

    async fn note(&self, note: Note) -> Result<(), StoreError> {
        self.reach().await?;
        self.store.note(note).await
    }

    async fn notes(&self, id: OperationId, limit: usize) -> Result<Vec<Noted>, StoreError> {
        self.reach().await?;
        self.store.notes(id, limit).await
    }

    async fn watch(&self, id: OperationId) {
        self.store.watch(id).await;
    }
}
