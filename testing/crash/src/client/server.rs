//! The server: one effect per key, over a network that fails by a seeded dice.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream;
use hapax_core::Faults;
use hapax_engine::{Engine, Options};
use hapax_tower::{
    Body, BoxError, IDEMPOTENCY_KEY, IdempotencyLayer, InFlight, Protection, Routes, Tenancy,
    Treatment,
};
use http::{HeaderValue, Request, Response, StatusCode, header::RETRY_AFTER};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use tokio::{
    net::TcpListener,
    task::{JoinHandle, spawn_blocking},
    time::sleep,
};
use tower::{ServiceExt, util::BoxCloneSyncService};
use tower_layer::Layer;

use super::{
    books::ServerBooks,
    mishap::{Mishap, dice},
};
use crate::{error::CrashError, open::DurableAddress};

/// A server on a port of its own, until it is dropped.
#[derive(Debug)]
pub struct PaymentServer {
    url: String,
    house: Arc<House>,
    accepting: JoinHandle<()>,
}

/// How a server treats a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerManners {
    /// As the layer does: one execution, and its answer for every duplicate.
    Layer,
    /// As if it were not there: every arrival is executed.
    Naive,
}

#[derive(Debug)]
struct House {
    books: Arc<ServerBooks>,
    service: Inner,
    journal: PathBuf,
    seed: u64,
    calm: AtomicBool,
}

type Inner = BoxCloneSyncService<Request<Body>, Response<Body>, BoxError>;

/// How long a duplicate waits for the first answer before it hears 409.
const WAIT: Duration = Duration::from_millis(300);
const BUSY: Duration = Duration::from_secs(5);

impl PaymentServer {
    /// Starts one whose records are in `dir`, for clients with this journal.
    pub async fn start(
        dir: &Path,
        journal: PathBuf,
        (manners, seed): (ServerManners, u64),
    ) -> Result<Self, CrashError> {
        let books = Arc::new(ServerBooks::default());
        let own = Arc::clone(&books);
        let run = tower::service_fn(move |request| execute(Arc::clone(&own), seed, request));
        let service = match manners {
            ServerManners::Naive => BoxCloneSyncService::new(run),
            ServerManners::Layer => BoxCloneSyncService::new(layer(dir)?.layer(run)),
        };
        let house = House { books, service, journal, seed, calm: AtomicBool::new(false) };
        let house = Arc::new(house);
        let listener = TcpListener::bind("127.0.0.1:0").await;
        let listener = listener.map_err(CrashError::io("listen"))?;
        let address = listener.local_addr().map_err(CrashError::io("listen"))?;
        let accepting = tokio::spawn(accept(listener, Arc::clone(&house)));
        Ok(Self { url: format!("http://{address}/payments"), house, accepting })
    }

    /// Where operations are sent.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What it saw and did.
    pub fn books(&self) -> &ServerBooks {
        &self.house.books
    }

    /// From now on nothing goes wrong.
    pub fn calm_down(&self) {
        self.house.calm.store(true, Relaxed);
    }
}

impl Drop for PaymentServer {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn layer(dir: &Path) -> Result<IdempotencyLayer, CrashError> {
    let store = DurableAddress::sqlite(&dir.join("server.db"), Faults::default())?;
    let engine = Engine::start(store, Options::default());
    let protection = Protection { in_flight: InFlight::Wait(WAIT), ..Protection::default() };
    let routes = Routes::new(Treatment::Protect(protection))
        .map_err(CrashError::refused("protect a route"))?;
    let tenancy = Tenancy::single("crash").map_err(CrashError::name)?;
    IdempotencyLayer::new(engine, tenancy, routes).map_err(CrashError::refused("protect a route"))
}

async fn accept(listener: TcpListener, house: Arc<House>) {
    while let Ok((stream, _)) = listener.accept().await {
        let house = Arc::clone(&house);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(Arc::clone(&house), request));
            // A client that hangs up, or dies, is what this is about.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// An error closes the connection without an answer.
async fn answer(house: Arc<House>, request: Request<Incoming>) -> Result<Response<Body>, BoxError> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    let request = Request::from_parts(parts, Body::from(body.clone()));
    if request.method().is_safe() {
        return house.service.clone().oneshot(request).await;
    }
    // A client that is gone does not stop what it has sent.
    tokio::spawn(async move { house.receive(request, &body).await }).await?
}

impl House {
    async fn receive(
        &self,
        request: Request<Body>,
        body: &[u8],
    ) -> Result<Response<Body>, BoxError> {
        let _in_hand = self.books.take_in_hand();
        let name = name(body)?;
        let key = request.headers().get(IDEMPOTENCY_KEY).map(HeaderValue::to_str).transpose()?;
        let key = key.unwrap_or_default().trim_matches('"').to_owned();
        let (journal, asked) = (self.journal.clone(), (name.clone(), key.clone()));
        let journalled = spawn_blocking(move || holds(&journal, &asked)).await??;
        let arrival = self.books.arrived(&name, key, journalled);
        let calm = self.calm.load(Relaxed);
        let mishap = if calm { None } else { Mishap::draw(self.seed, &name, arrival) };
        self.books.change(&name, |seen| seen.mishaps += u64::from(mishap.is_some()));
        self.suffer(mishap, &name, request).await
    }

    async fn suffer(
        &self,
        mishap: Option<Mishap>,
        name: &str,
        request: Request<Body>,
    ) -> Result<Response<Body>, BoxError> {
        let work = self.work(name, request);
        match mishap {
            None => work.await,
            Some(Mishap::RequestLost) => Err("the request is lost".into()),
            Some(Mishap::RequestLate(late)) => {
                sleep(late).await;
                work.await
            }
            Some(Mishap::AnswerLost) => {
                work.await?;
                Err("the answer is lost".into())
            }
            Some(Mishap::AnswerCut) => cut(work.await?).await,
            Some(Mishap::AnswerLate(late)) => {
                let answer = work.await;
                sleep(late).await;
                answer
            }
            Some(Mishap::BadGateway) => {
                work.await?;
                Ok(says(StatusCode::BAD_GATEWAY))
            }
            Some(Mishap::Unavailable) => Ok(says(StatusCode::SERVICE_UNAVAILABLE)),
            Some(Mishap::InFlight) => {
                let mut answer = says(StatusCode::CONFLICT);
                answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("0"));
                Ok(answer)
            }
            Some(Mishap::Busy) => Ok(says(StatusCode::TOO_MANY_REQUESTS)),
            Some(Mishap::Stranger(late)) => {
                sleep(late).await;
                Ok(says(StatusCode::UNAUTHORIZED))
            }
        }
    }

    async fn work(&self, name: &str, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let answer = self.service.clone().oneshot(request).await?;
        let replayed = answer.headers().contains_key("idempotent-replayed");
        self.books.change(name, |seen| seen.replays += u64::from(replayed));
        Ok(answer)
    }
}

/// The service behind it all: `pay NAME` has an effect, `decline NAME` has none. Some take time.
async fn execute(
    books: Arc<ServerBooks>,
    seed: u64,
    request: Request<Body>,
) -> Result<Response<Body>, BoxError> {
    let body = request.into_body().collect().await?.to_bytes();
    let name = name(&body)?;
    let mut dice = dice(seed, &name, 0);
    if dice.u32(..4) == 0 {
        sleep(Duration::from_millis(dice.u64(20..250))).await;
    }
    let (status, text) = if body.starts_with(b"pay ") {
        (StatusCode::CREATED, books.effect(&name))
    } else {
        (StatusCode::PAYMENT_REQUIRED, "declined".to_owned())
    };
    let mut answer = Response::new(Body::from(Bytes::from(text)));
    *answer.status_mut() = status;
    Ok(answer)
}

fn name(body: &[u8]) -> Result<String, BoxError> {
    let text = str::from_utf8(body)?;
    let (_, name) = text.split_once(' ').ok_or("neither `pay NAME` nor `decline NAME`")?;
    Ok(name.to_owned())
}

fn says(status: StatusCode) -> Response<Body> {
    let mut answer = Response::new(Body::from(Bytes::from_static(b"somebody on the way")));
    *answer.status_mut() = status;
    answer
}

/// The first half of the answer.
async fn cut(answer: Response<Body>) -> Result<Response<Body>, BoxError> {
    let (parts, body) = answer.into_parts();
    let whole = body.collect().await?.to_bytes();
    let half = Ok::<_, BoxError>(Frame::data(whole.slice(..whole.len() / 2)));
    let broken = Err("the answer breaks off".into());
    let body = StreamBody::new(stream::iter([half, broken]));
    Ok(Response::from_parts(parts, Body::new(body)))
}

/// Whether the journal holds the operation with this key, as somebody who only reads sees it.
fn holds(journal: &Path, (name, key): &(String, String)) -> Result<bool, rusqlite::Error> {
    if !journal.exists() {
        return Ok(false);
    }
    let reading = Connection::open_with_flags(journal, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    reading.busy_timeout(BUSY)?;
    let select = "SELECT key = ?2 FROM hapax_calls_readable WHERE name = ?1";
    let found = reading.query_row(select, [name, key], |row| row.get(0)).optional()?;
    Ok(found.unwrap_or(false))
}
