//! Every protected request has one span, which names nobody.
//!
//! Tested beside the code and not in `tests`: a span that several threads meet for the first time is
//! now and then disabled for a subscriber of one thread alone.

use std::{
    convert::Infallible,
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use hapax_core::{Salt, Timestamp, memory};
use hapax_engine::{Engine, Options};
use http::{Request, Response};
use tower::{Layer, ServiceExt, service_fn};
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::{
    Body, IdempotencyLayer, KeptCredentials, Later, Protection, Routes, Site, Tenancy, Treatment,
};

/// Writes down the fields of the layer's spans.
#[derive(Clone, Default)]
struct Notes {
    fields: Arc<Mutex<Vec<(String, String)>>>,
    spans: Arc<AtomicU64>,
}

impl Visit for Notes {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let noted = (field.name().to_owned(), format!("{value:?}"));
        self.fields.lock().unwrap().push(noted);
    }
}

impl Subscriber for Notes {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.name() == "idempotency"
    }

    fn new_span(&self, attributes: &span::Attributes<'_>) -> span::Id {
        attributes.record(&mut self.clone());
        span::Id::from_u64(self.spans.fetch_add(1, Relaxed) + 1)
    }

    fn record(&self, _: &span::Id, values: &span::Record<'_>) {
        values.record(&mut self.clone());
    }

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn a_protected_request_has_one_span_with_hashes_in_place_of_names() {
    let notes = Notes::default();
    let guard = tracing::subscriber::set_default(notes.clone());
    let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
    let engine = Engine::start(store, Options::default());
    let routes = Routes::new(Treatment::Protect(Protection::default())).unwrap();
    let layer = IdempotencyLayer::new(engine, Tenancy::credential(), routes).unwrap();
    let service = layer.layer(service_fn(|_: Request<Body>| async {
        Ok::<_, Infallible>(Response::new(Body::empty()))
    }));
    for method in ["POST", "POST", "GET"] {
        let request = Request::builder().method(method).uri("/pay");
        let request = request.header("authorization", "alice");
        let request = request.header("idempotency-key", "secret-key").body(Body::empty()).unwrap();
        assert_eq!(service.clone().oneshot(request).await.unwrap().status(), 200);
    }
    drop(guard);
    assert_eq!(notes.spans.load(Relaxed), 2);
    let fields = notes.fields.lock().unwrap();
    let of = |name: &str| -> Vec<&str> {
        fields.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(of("decision"), ["\"executed\"", "\"replayed\""]);
    assert_eq!(of("fence"), ["1"]);
    assert_eq!(of("scope"), ["\"POST /pay\"", "\"POST /pay\""]);
    assert_eq!(of("key")[0], of("key")[1]);
    assert_eq!(of("tenant").len(), 2);
    assert!(!fields.iter().any(|(_, value)| value.contains("secret") || value.contains("alice")));
}

#[tokio::test]
async fn an_attempt_nobody_waits_for_has_a_span_too() {
    let notes = Notes::default();
    let guard = tracing::subscriber::set_default(notes.clone());
    let store = memory::Store::new(Salt::from_bytes([7; 32]), || Timestamp::ZERO);
    let protection = Protection {
        respond_async: true,
        credentials: KeptCredentials::Keep,
        ..Protection::default()
    };
    let routes = Routes::new(Treatment::Protect(protection)).unwrap();
    let later = Later::new(routes, Site::default());
    let options = Options { finisher: Some(later.finisher()), ..Options::default() };
    let layer =
        IdempotencyLayer::with_later(Engine::start(store, options), Tenancy::credential(), &later);
    let (ran, mut runs) = tokio::sync::mpsc::unbounded_channel();
    let service = service_fn(move |_: Request<Body>| {
        let _ = ran.send(());
        async { Ok::<_, Infallible>(Response::new(Body::empty())) }
    });
    later.serve(service.clone());
    let request = Request::post("/pay").header("authorization", "alice");
    let request = request.header("prefer", "respond-async").header("idempotency-key", "k");
    let accepted = layer.layer(service).oneshot(request.body(Body::empty()).unwrap()).await;
    assert_eq!(accepted.unwrap().status(), 202);
    runs.recv().await.unwrap();
    drop(guard);
    let fields = notes.fields.lock().unwrap();
    let of = |name: &str| -> Vec<&str> {
        fields.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(of("decision"), ["\"queued\"", "\"taken_over\""]);
    assert_eq!(of("operation")[0], of("operation")[1]);
}
