//! A request through the layer and the engine to the memory store, and back.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    task::{Context, Poll},
};

use bytes::Bytes;
use hapax_tower::{
    Body, Handled, Idempotency, IdempotencyLayer, Protection, Routes, Tenancy, Treatment, Verdict,
};
use http::{Request, Response};
use http_body_util::Full;
use tokio::runtime::Runtime;
use tower_layer::Layer;
use tower_service::Service;

use super::{engine, key};
use crate::{Failed, measure::each};

/// Every request has a key of its own.
pub(crate) fn new(rounds: usize) -> Result<(), Failed> {
    let (runtime, mut shop) = open()?;
    let mut ask = |request| runtime.block_on(shop.call(request));
    expect(&ask(request(usize::MAX)?)?, Verdict::Executed)?;
    let mut requests = (0..).map(request);
    each(rounds, |_| requests.next(), |request| request.and_then(Result::ok).map(&mut ask));
    Ok(())
}

/// Every request is a retry of the same.
pub(crate) fn replay(rounds: usize) -> Result<(), Failed> {
    let (runtime, mut shop) = open()?;
    let mut ask = |request| runtime.block_on(shop.call(request));
    expect(&ask(request(0)?)?, Verdict::Executed)?;
    expect(&ask(request(0)?)?, Verdict::Replayed)?;
    each(rounds, |_| request(0), |request| request.map(&mut ask));
    Ok(())
}

/// What a shop does is not what is counted: it answers at once.
#[derive(Debug, Clone)]
struct Shop {
    answer: Bytes,
}

impl Service<Request<Body>> for Shop {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        ready(Ok(Response::new(Full::new(self.answer.clone()))))
    }
}

fn open() -> Result<(Runtime, Idempotency<Shop>), Failed> {
    let runtime = engine::runtime()?;
    let within = runtime.enter();
    let engine = engine::start(engine::store());
    let routes = Routes::new(Treatment::Protect(Protection::default()))?;
    let layer = IdempotencyLayer::new(engine, Tenancy::credential(), routes)?;
    let shop = layer.layer(Shop { answer: Bytes::from(vec![b'a'; 512]) });
    drop(within);
    Ok((runtime, shop))
}

fn request(number: usize) -> Result<Request<Full<Bytes>>, http::Error> {
    Request::post("/payments")
        .header("host", "shop.example")
        .header("user-agent", "shop-client/1.0")
        .header("authorization", "Bearer 3f2a9c7e5d1b4a6f8e0d2c4b6a8f0e1d")
        .header("content-type", "application/json")
        .header("idempotency-key", format!("\"{}\"", key(number)))
        .body(Full::new(Bytes::from(vec![b'b'; 512])))
}

fn expect(response: &Response<Body>, verdict: Verdict) -> Result<(), Failed> {
    let handled = response.extensions().get::<Handled>().map(|handled| handled.verdict);
    if handled == Some(verdict) { Ok(()) } else { Err(format!("it was {handled:?}").into()) }
}
