//! Whoever is refused for want of a store finds the cause in the log.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use hapax_core::{Store as _, store::Write};
use tracing::{
    Event, Level, Metadata, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber,
};

use crate::{
    backend::Postgres,
    reference::{claim, complete, operation},
};

/// Keeps what is warned of.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("hapax_postgres")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(String::new());
        event.record(&mut line);
        self.0.lock().unwrap().push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0 += &format!("{}={value:?} ", field.name());
    }
}

#[tokio::test]
async fn the_cause_of_a_refusal_is_said_and_not_once_for_each_request() {
    let log = Log::default();
    let _guard = subscriber::set_default(log.clone());
    let database = Postgres::empty().await;
    let store = database.store().await;
    complete(&store, "before", b"").await;
    let rename = "ALTER TABLE hapax.operations RENAME TO operations_elsewhere";
    database.client().await.batch_execute(rename).await.unwrap();
    for _ in 0..20 {
        let batch = vec![Write::Claim(claim("after", 1))];
        assert!(store.commit(batch).await[0].is_err());
        assert!(store.load(vec![operation("after").id()]).await[0].is_err());
    }
    let said = log.0.lock().unwrap().clone();
    assert!(said[0].contains("relation \"hapax.operations\" does not exist"), "{said:?}");
    assert!(said.len() < 20, "{said:?}");
}
