//! Makes a new answer for a retry, with the time it was made at.

use std::{sync::Arc, time::SystemTime};

use crate::{Conduct, PlainResponse, Species};

pub(super) const SPECIES: Species = Species::broken(
    "replay-with-new-date",
    "makes a new answer for a retry, with the time it was made at",
    &["V01"],
    || Arc::new(ReplayWithNewDate),
);

#[derive(Debug)]
struct ReplayWithNewDate;

impl Conduct for ReplayWithNewDate {
    fn replay(&self, mut kept: PlainResponse) -> PlainResponse {
        kept.text = dated(&kept.text);
        kept.with("idempotent-replayed", "true").with("cache-control", "no-store")
    }
}

#[expect(clippy::disallowed_methods, reason = "that it reads the clock is the fault")]
fn dated(text: &str) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let members = text.trim_end_matches('}');
    format!(r#"{members},"answered_at":"{}.{:09}"}}"#, now.as_secs(), now.subsec_nanos())
}
