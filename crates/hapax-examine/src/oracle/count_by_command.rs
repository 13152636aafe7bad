//! A command of the user's is asked how often an effect happened.

use std::time::Duration;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{EffectOracle, JsonPath, OracleFault, OracleLevel, counted};
use crate::shell::{excerpt, run_in_shell};

const PATIENCE: Duration = Duration::from_secs(10);

/// `grep -c {marker} ledger.csv || true`, and what it prints is the count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountByCommand {
    /// What the shell runs; `{marker}` is replaced, and has nothing that the shell would read as anything else.
    pub command: String,
    /// Where the count is, if JSON is printed; else all of it is the count.
    pub pointer: Option<JsonPath>,
}

impl EffectOracle for CountByCommand {
    fn count<'a>(&'a self, marker: &'a str) -> BoxFuture<'a, Result<u64, OracleFault>> {
        Box::pin(async move {
            let is_harmless = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            if !marker.bytes().all(is_harmless) {
                return Err(OracleFault::new(format!("`{marker}` is nothing for a shell")));
            }
            let command = self.command.replace("{marker}", marker);
            let printed = run_in_shell(&command, PATIENCE).await.map_err(OracleFault::new)?;
            self.read(&printed).map_err(|why| OracleFault::new(format!("`{command}` {why}")))
        })
    }

    fn level(&self) -> OracleLevel {
        OracleLevel::Counted
    }

    fn describe(&self) -> String {
        match &self.pointer {
            Some(pointer) => format!("`{}` {}", self.command, pointer.as_str()),
            None => format!("`{}`", self.command),
        }
    }
}

impl CountByCommand {
    fn read(&self, printed: &str) -> Result<u64, String> {
        let said = || match excerpt(printed) {
            text if text.is_empty() => "nothing".to_owned(),
            text => format!("`{text}`"),
        };
        let Some(pointer) = &self.pointer else {
            let count = printed.trim().parse();
            return count.map_err(|_| format!("printed {} where a number was expected", said()));
        };
        let document: Value = serde_json::from_str(printed)
            .map_err(|error| format!("printed what is no JSON ({error}): {}", said()))?;
        counted(pointer, &document).map_err(|why| format!("printed JSON, but {why}"))
    }
}
