//! Every protected request has one span, which names nobody.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
};

use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    span,
};

use crate::world::World;

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

#[tokio::test(start_paused = true)]
async fn a_protected_request_has_one_span_with_hashes_in_place_of_names() {
    let world = World::new();
    // A span first met by a thread without a subscriber, while another thread has one, stays
    // disabled; met before there is any, it does not.
    world.pay("first", "100").await;
    let notes = Notes::default();
    let guard = tracing::subscriber::set_default(notes.clone());
    world.pay("secret-key", "100").await;
    world.pay("secret-key", "100").await;
    world.send(http::Request::get("/pay"), "").await;
    drop(guard);
    assert_eq!(notes.spans.load(Relaxed), 2);
    let fields = notes.fields.lock().unwrap();
    let of = |name: &str| -> Vec<&str> {
        fields.iter().filter(|(n, _)| n == name).map(|(_, value)| value.as_str()).collect()
    };
    assert_eq!(of("decision"), ["\"execute\"", "\"replay\""]);
    assert_eq!(of("fence"), ["1"]);
    assert_eq!(of("scope"), ["\"POST /pay\"", "\"POST /pay\""]);
    assert_eq!(of("key")[0], of("key")[1]);
    assert_eq!(of("tenant").len(), 2);
    assert!(!fields.iter().any(|(_, value)| value.contains("secret") || value.contains("alice")));
}
