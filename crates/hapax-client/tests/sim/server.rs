//! The server: the real layer around a service with an effect, over HTTP on the simulated network.

use std::{
    future::ready,
    net::Ipv4Addr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use hapax_core::{Policy, Recovery, RetainFrom, Retention};
use hapax_engine::{Engine, Options};
use hapax_tower::{
    Body, BoxError, IdempotencyLayer, Later, ProbeAnswer, Prober, Protection, Routes, Site,
    Tenancy, Treatment,
};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use tokio::time::sleep;
use tower_layer::Layer;
use tower_service::Service;
use turmoil::net::TcpListener;

use super::{
    plan::{Variation, is_refused},
    world::World,
};

pub(crate) const HOST: &str = "server";
pub(crate) const PORT: u16 = 80;

const LEASE: Duration = Duration::from_secs(3);
/// Shorter than the lease, longer than an attempt of a client.
const TIMEOUT: Duration = Duration::from_millis(2500);
const QUICK: Duration = Duration::from_millis(300);
const SLOW: Duration = Duration::from_secs(5);

/// Serves until it is killed.
pub(crate) async fn run(world: World) -> turmoil::Result {
    world.note("server starts");
    let charges = Charges { world: world.clone() };
    if world.plan().variation == Variation::NoLayer {
        return serve(charges).await;
    }
    let later = Later::new(routes(&world)?, Site::default());
    let options = Options {
        sweep_every: Duration::from_secs(1),
        finisher: Some(later.finisher()),
        seed: Some(world.plan().seed ^ (world.next_start() << 32)),
        ..Options::default()
    };
    later.serve(charges.clone());
    let engine = Engine::start(world.store(), options);
    let layer = IdempotencyLayer::with_later(engine, Tenancy::single("shop")?, &later);
    serve(layer.layer(charges)).await
}

fn routes(world: &World) -> turmoil::Result<Routes> {
    let window = Duration::from_secs(24 * 60 * 60);
    let retention = Retention { window, from: RetainFrom::Creation, tombstone: Duration::ZERO };
    let recovery = world.plan().recovery;
    let policy = Policy::new(LEASE, retention, recovery)?;
    // The service is in the process of its layer, and ends with it.
    let policy = policy.working_for(Duration::ZERO);
    let ledger = world.clone();
    let probe = Prober::from_fn(move |asked| ready(probe(&ledger, asked.request.body())));
    let protection =
        Protection { policy, timeout: TIMEOUT, probe: Some(probe), ..Protection::default() };
    Ok(Routes::new(Treatment::Protect(protection))?)
}

fn probe(world: &World, request: &Bytes) -> ProbeAnswer {
    let name = String::from_utf8_lossy(request);
    match world.account(&name).receipts.first() {
        Some(receipt) => ProbeAnswer::Happened(charged(*receipt).map(Bytes::from)),
        None => ProbeAnswer::DidNotHappen,
    }
}

fn charged(receipt: u32) -> Response<String> {
    let mut response = Response::new(receipt.to_string());
    *response.status_mut() = StatusCode::CREATED;
    response
}

async fn serve<S, B>(service: S) -> turmoil::Result
where
    S: Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, PORT)).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        let service = TowerToHyperService::new(service.clone());
        // A connection that breaks is what this is about.
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

/// The service: a request's body is the name of what is charged.
#[derive(Clone)]
struct Charges {
    world: World,
}

impl<B> Service<Request<B>> for Charges
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let world = self.world.clone();
        Box::pin(async move {
            let body = request.into_body().collect().await.map_err(Into::into)?.to_bytes();
            charge(&world, &String::from_utf8_lossy(&body)).await
        })
    }
}

async fn charge(world: &World, name: &str) -> Result<Response<Body>, BoxError> {
    world.asked(name);
    let chances = world.plan().chances;
    let pause = if world.goes_wrong(chances.slow) { SLOW } else { QUICK };
    sleep(world.up_to(pause)).await;
    if is_refused(name) {
        return Ok(bare(StatusCode::PAYMENT_REQUIRED));
    }
    if world.goes_wrong(chances.busy) {
        return Ok(bare(StatusCode::SERVICE_UNAVAILABLE));
    }
    let receipt = world.effect(name, world.plan().recovery == Recovery::Resend);
    let pause = if world.goes_wrong(chances.slow) { SLOW } else { QUICK };
    sleep(world.up_to(pause)).await;
    if world.goes_wrong(chances.lost) {
        return Err("it broke off after the effect".into());
    }
    Ok(charged(receipt).map(|receipt| Body::from(Bytes::from(receipt))))
}

fn bare(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
