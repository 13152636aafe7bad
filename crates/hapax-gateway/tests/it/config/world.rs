//! Requests through the layer that a configuration asks for, as the gateway would send them.

use std::net::SocketAddr;

use bytes::Bytes;
use hapax_core::{Salt, Timestamp, memory};
use hapax_engine::{Engine, Options};
use hapax_gateway::{Config, Peer};
use hapax_tower::{Body, IdempotencyLayer};
use http::{Request, Response, StatusCode, request::Builder};
use tower::{Layer, ServiceExt, service_fn};

/// A layer as configured, around a service that says yes.
pub(crate) struct World {
    layer: IdempotencyLayer<memory::Store>,
}

impl World {
    pub(crate) fn new(config: Config) -> Self {
        let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
        let engine = Engine::start(store, Options::default());
        let layer = IdempotencyLayer::new(engine, config.tenancy, config.routes);
        Self { layer: layer.unwrap() }
    }

    /// What a request from this address hears, and whether that is a replay.
    pub(crate) async fn send(&self, peer: &str, request: Builder) -> (StatusCode, bool) {
        let address: SocketAddr = format!("{peer}:4711").parse().unwrap();
        let request = request.extension(Peer::new(address, false));
        let service = self.layer.layer(service_fn(|_: Request<Body>| async {
            Ok::<_, std::convert::Infallible>(Response::new(Body::from(Bytes::from("done"))))
        }));
        let answer = service.oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        (answer.status(), answer.headers().contains_key("idempotent-replayed"))
    }
}

/// A request that is protected.
pub(crate) fn keyed() -> Builder {
    Request::post("/a").header("idempotency-key", "k-1")
}
