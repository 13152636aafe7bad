//! Requests through the layer that a configuration asks for, as the gateway would send them.

use std::net::SocketAddr;

use bytes::Bytes;
use hapax_core::{Salt, Timestamp, memory};
use hapax_engine::{Engine, Options};
use hapax_gateway::{Config, Peer};
use hapax_tower::{Body, BoxError, IdempotencyLayer};
use http::{Request, Response, StatusCode, request::Builder};
use tower::{Layer, ServiceExt, service_fn};

/// A layer as configured, around a service that says yes, or breaks.
pub(crate) struct World {
    layer: IdempotencyLayer,
    breaks: bool,
}

impl World {
    pub(crate) fn new(config: Config) -> Self {
        let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
        let engine = Engine::start(store, Options::default());
        let layer = IdempotencyLayer::new(engine, config.tenancy, config.routes);
        Self { layer: layer.unwrap(), breaks: false }
    }

    /// The same around a service that takes every request and never answers.
    pub(crate) fn that_breaks(config: Config) -> Self {
        Self { breaks: true, ..Self::new(config) }
    }

    /// What a request from this address hears, and whether that is a replay.
    pub(crate) async fn send(&self, peer: &str, request: Builder) -> (StatusCode, bool) {
        let address: SocketAddr = format!("{peer}:4711").parse().unwrap();
        let request = request.extension(Peer::new(address, false));
        let breaks = self.breaks;
        let service = self.layer.layer(service_fn(move |_: Request<Body>| async move {
            let done = Response::new(Body::from(Bytes::from("done")));
            if breaks { Err(BoxError::from("gone")) } else { Ok(done) }
        }));
        let answer = service.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        (answer.status(), answer.headers().contains_key("idempotent-replayed"))
    }
}

/// A request that is protected.
pub(crate) fn keyed() -> Builder {
    Request::post("/a").header("idempotency-key", "k-1")
}
