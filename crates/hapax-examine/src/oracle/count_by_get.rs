//! The API itself is asked what it has.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{EffectOracle, JsonPath, OracleFault, OracleLevel};
use crate::{ExamRequest, HttpAddress, ProbeLog, Wire};

const PATIENCE: Duration = Duration::from_secs(10);

/// `GET /payments?ref={marker}`, and where in its answer the count is.
#[derive(Debug)]
pub struct CountByGet {
    /// How it is asked.
    pub wire: Wire,
    /// Where.
    pub address: HttpAddress,
    /// Path and query; `{marker}` is replaced.
    pub path: String,
    /// With these headers.
    pub headers: Vec<(String, String)>,
    /// Where the count is: a number, an array, or the length of something.
    pub pointer: JsonPath,
}

impl EffectOracle for CountByGet {
    fn count<'a>(&'a self, marker: &'a str) -> BoxFuture<'a, Result<u64, OracleFault>> {
        Box::pin(async move {
            let request =
                ExamRequest::get(&self.path.replace("{marker}", marker), self.headers.clone());
            let log = ProbeLog::begin();
            let exchange = self.wire.ask(&log, "count", &self.address, &request, PATIENCE).await;
            let fault = |reason: String| OracleFault { reason };
            let Some(answer) = exchange.answer() else {
                return Err(fault(format!(
                    "GET {} was not answered: {:?}",
                    request.path, exchange.end
                )));
            };
            // Nothing is known by this marker: no effect.
            if answer.status == 404 {
                return Ok(0);
            }
            if !answer.is_success() {
                return Err(fault(format!(
                    "GET {} was answered with {}",
                    request.path, answer.status
                )));
            }
            let document: Value = serde_json::from_slice(&answer.body).map_err(|error| {
                fault(format!("the answer to GET {} is no JSON: {error}", request.path))
            })?;
            let found = self.pointer.find(&document);
            let count = found.as_ref().and_then(|found| match found {
                Value::Array(items) => Some(items.len() as u64),
                Value::Number(number) => number.as_u64(),
                Value::Null | Value::Bool(_) | Value::String(_) | Value::Object(_) => None,
            });
            count.ok_or_else(|| {
                fault(format!("`{}` counts nothing in {document}", self.pointer.as_str()))
            })
        })
    }

    fn level(&self) -> OracleLevel {
        OracleLevel::Counted
    }

    fn describe(&self) -> String {
        format!("GET {} {}", self.path, self.pointer.as_str())
    }
}
