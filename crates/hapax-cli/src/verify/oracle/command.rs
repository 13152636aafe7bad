//! A command counts.

use std::{process::Stdio, time::Duration};

use futures_util::future::BoxFuture;
use hapax_examine::{EffectOracle, OracleFault, OracleLevel};
use tokio::process::Command;

const PATIENCE: Duration = Duration::from_secs(30);

/// A command for the shell, which finds the marker in `$MARKER` and prints a number.
#[derive(Debug)]
pub(super) struct CountByCommand {
    command: String,
}

impl CountByCommand {
    pub(super) fn new(command: &str) -> Self {
        Self { command: command.to_owned() }
    }

    async fn ask(&self, marker: &str) -> Result<u64, String> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(self.command.replace("{marker}", marker)).env("MARKER", marker);
        command.stdin(Stdio::null()).kill_on_drop(true);
        let output = tokio::time::timeout(PATIENCE, command.output()).await;
        let output = output.map_err(|_| format!("it did not end within {PATIENCE:?}"))?;
        let output = output.map_err(|error| format!("it cannot be run: {error}"))?;
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            let last = told.lines().last().unwrap_or_default();
            return Err(format!("it ended with {}: {last}", output.status));
        }
        let printed = String::from_utf8_lossy(&output.stdout);
        let printed = printed.trim();
        printed.parse().map_err(|_| format!("it printed `{printed:.60}`, which is no number"))
    }
}

impl EffectOracle for CountByCommand {
    fn count<'a>(&'a self, marker: &'a str) -> BoxFuture<'a, Result<u64, OracleFault>> {
        Box::pin(async move {
            let fault = |reason| OracleFault { reason: format!("--count-command: {reason}") };
            self.ask(marker).await.map_err(fault)
        })
    }

    fn level(&self) -> OracleLevel {
        OracleLevel::Counted
    }

    fn describe(&self) -> String {
        format!("the command `{}`", self.command)
    }
}
