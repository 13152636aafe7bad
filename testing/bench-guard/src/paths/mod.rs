//! The hot paths: what every protected request goes through.

mod engine;
mod http;
mod machine;
mod reading;
mod retry;

use hapax_core::{InvalidName, Key, Operation, Salt, Scope, Tenant};

use crate::Failed;

/// One hot path.
pub(crate) struct HotPath {
    /// As the table and the committed figures call it.
    pub(crate) name: &'static str,
    /// How often it is run: often enough that what happens once in a while counts with its share.
    pub(crate) rounds: usize,
    /// Runs it.
    pub(crate) run: fn(usize) -> Result<(), Failed>,
}

pub(crate) const PATHS: &[HotPath] = &[
    HotPath { name: "decide-first", rounds: 1000, run: machine::decide_first },
    HotPath { name: "decide-replay", rounds: 1000, run: machine::decide_replay },
    HotPath { name: "record-encode", rounds: 1000, run: machine::encode },
    HotPath { name: "record-decode", rounds: 1000, run: machine::decode },
    HotPath { name: "fingerprint-512", rounds: 200, run: machine::fingerprint_512 },
    HotPath { name: "fingerprint-16k", rounds: 50, run: machine::fingerprint_16k },
    HotPath { name: "key-quoted", rounds: 1000, run: reading::key_quoted },
    HotPath { name: "key-bare", rounds: 1000, run: reading::key_bare },
    HotPath { name: "canonical-json", rounds: 500, run: reading::canonical },
    HotPath { name: "retry-check", rounds: 1000, run: retry::check },
    HotPath { name: "batch-of-64", rounds: 32, run: engine::batch },
    HotPath { name: "http-new", rounds: 1000, run: http::new },
    HotPath { name: "http-replay", rounds: 1000, run: http::replay },
];

const SALT: Salt = Salt::from_bytes([7; 32]);
const TENANT: &str = "acme";
const SCOPE: &str = "POST /payments";

fn operation(number: usize) -> Result<Operation, InvalidName> {
    Ok(Operation::new(Tenant::parse(TENANT)?, Scope::parse(SCOPE)?, Key::parse(key(number))?))
}

/// As long as a UUID, which most keys are.
fn key(number: usize) -> String {
    format!("9f1c2d3e-4b5a-4c7d-8e9f-{number:012}")
}
