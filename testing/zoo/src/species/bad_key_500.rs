//! Crashes on a key that it cannot read.

use http::HeaderMap;
use std::sync::Arc;

use crate::{Conduct, PlainResponse, Species, submission};

pub(super) const SPECIES: Species =
    Species::broken("bad-key-500", "crashes on a key that it cannot read", &["V20"], || {
        Arc::new(BadKey500)
    });

#[derive(Debug)]
struct BadKey500;

impl Conduct for BadKey500 {
    fn key(&self, headers: &HeaderMap) -> Result<String, PlainResponse> {
        let is_there = headers.contains_key("idempotency-key");
        let crashed = |_| PlainResponse::problem(500, "value too long for type character varying");
        let key = submission::key(headers);
        if is_there { key.map_err(crashed) } else { key }
    }
}
