//! The API itself is asked what it has.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{EffectOracle, JsonPath, OracleFault, OracleLevel, counted};
use crate::{ExamRequest, Exchange, HttpAddress, ProbeLog, RawAnswer, Wire, shell::excerpt};

const PATIENCE: Duration = Duration::from_secs(10);
/// Before it is asked once more.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

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
            let path = self.path.replace("{marker}", marker);
            let mut asked = self.ask(&path).await;
            // A connection that broke, or a server that is on its way up.
            if asked.status().is_none_or(|status| status == 429 || status >= 500) {
                tokio::time::sleep(AGAIN_AFTER).await;
                asked = self.ask(&path).await;
            }
            let found = match asked.answer() {
                Some(answer) => self.read(answer),
                None => Err(format!("was not answered: {}", asked.end.describe())),
            };
            found.map_err(|why| OracleFault::new(format!("GET {}{path} {why}", self.address)))
        })
    }

    fn level(&self) -> OracleLevel {
        OracleLevel::Counted
    }

    fn describe(&self) -> String {
        format!("GET {} {}", self.path, self.pointer.as_str())
    }
}

impl CountByGet {
    async fn ask(&self, path: &str) -> Exchange {
        let request = ExamRequest::get(path, self.headers.clone());
        // What is counted is no evidence by itself.
        let log = ProbeLog::begin();
        self.wire.ask(&log, "count", &self.address, &request, PATIENCE).await
    }

    fn read(&self, answer: &RawAnswer) -> Result<u64, String> {
        let said = excerpt(&String::from_utf8_lossy(&answer.body));
        match answer.status {
            200..=299 => {}
            // Nothing is known by this marker: no effect.
            404 => return Ok(0),
            300..=399 => {
                let to = answer.header("location").unwrap_or("another place");
                return Err(format!("redirects ({}) to {to}: give that address", answer.status));
            }
            401 | 403 => {
                return Err(format!(
                    "wants to know who asks ({}): give it credentials",
                    answer.status
                ));
            }
            status => return Err(format!("was answered with {status}: {said}")),
        }
        let document: Value = serde_json::from_slice(&answer.body)
            .map_err(|error| format!("was answered with what is no JSON ({error}): {said}"))?;
        counted(&self.pointer, &document).map_err(|why| format!("was answered, but {why}"))
    }
}
