//! Who can tell how often an effect happened.

use std::fmt::Debug;

use futures_util::future::BoxFuture;
use thiserror::Error;

mod count_by_get;
mod json_path;

pub use self::{count_by_get::CountByGet, json_path::JsonPath};

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
