//! Who can tell how often an effect happened.

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use serde_json::Value;
use thiserror::Error;

mod arrival;
mod count_by_command;
mod count_by_get;
mod json_path;
mod listener;
mod upstream_double;
mod webhook_sink;

use self::{
    arrival::WholeArrival,
    listener::{Arrivals, ListenerReply, ListeningTask},
};
pub use self::{
    count_by_command::CountByCommand,
    count_by_get::CountByGet,
    json_path::JsonPath,
    upstream_double::{UpstreamConduct, UpstreamDouble},
    webhook_sink::{WebhookArrival, WebhookSink},
};

/// Counts the effects of one operation, found by the marker that was sent with it.
pub trait EffectOracle: Debug + Send + Sync {
    /// How often it happened.
    fn count<'a>(&'a self, marker: &'a str) -> BoxFuture<'a, Result<u64, OracleFault>>;

    /// How much its word is worth.
    fn level(&self) -> OracleLevel;

    /// What it does, in words: `GET /payments?ref={marker} /items/length`.
    fn describe(&self) -> String;
}

/// How much can be told about effects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OracleLevel {
    /// O0: nothing but answers.
    Answers,
    /// O1: answers name their effect.
    Names,
    /// O2: effects are counted, by the API or beside it.
    Counted,
    /// O3: effects are counted where they arrive.
    Received,
}

/// Why effects could not be counted.
#[derive(Debug, Error)]
#[error("effects could not be counted: {reason}")]
pub struct OracleFault {
    /// Why, in words.
    pub reason: String,
}

impl OracleFault {
    fn new(reason: impl Into<String>) -> Self {
        Self { reason: reason.into() }
    }
}

impl OracleLevel {
    /// As reports name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Answers => "O0",
            Self::Names => "O1",
            Self::Counted => "O2",
            Self::Received => "O3",
        }
    }
}

/// The count that stands at `pointer`: a number, or as many as an array has.
fn counted(pointer: &JsonPath, document: &Value) -> Result<u64, String> {
    let count = pointer.find(document).and_then(|found| match found {
        Value::Array(items) => u64::try_from(items.len()).ok(),
        Value::Number(number) => number.as_u64(),
        Value::String(text) => text.trim().parse().ok(),
        Value::Null | Value::Bool(_) | Value::Object(_) => None,
    });
    count.ok_or_else(|| {
        let text = crate::shell::excerpt(&document.to_string());
        format!("there is no number and no array at `{}` in {text}", pointer.as_str())
    })
}
