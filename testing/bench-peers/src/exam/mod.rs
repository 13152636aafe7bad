//! What a way does to real requests, asked before anything is timed.

mod asking;
mod crashes;
mod retries;

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    error::BenchError,
    stage::{Ground, Purpose},
    ways::{Keeping, Way},
};

/// How long an owner is trusted in exams that wait for its end.
const LEASE: Duration = Duration::from_secs(2);

/// One question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    Twice,
    AtOnce,
    OtherBody,
    Failure,
    Restart,
    Killed,
    Slow,
    Paused,
}

impl Check {
    pub(crate) const fn question(self) -> &'static str {
        match self {
            Self::Twice => "same key twice: one effect, one answer?",
            Self::AtOnce => "32 duplicates at once: one effect, one answer?",
            Self::OtherBody => "same key, other body: refused?",
            Self::Failure => "the handler answers 500: kept?",
            Self::Restart => "killed after the answer: remembered?",
            Self::Killed => "killed between effect and answer: one effect?",
            Self::Slow => "the handler outlives its lease: one effect?",
            Self::Paused => "owner stopped past its lease, then goes on: one answer?",
        }
    }
}

/// What was seen.
#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) check: Check,
    /// `None` where the question does not arise.
    pub(crate) yes: Option<bool>,
    pub(crate) effects: u32,
    pub(crate) said: String,
}

impl Finding {
    pub(crate) fn verdict(&self) -> &'static str {
        match self.yes {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "-",
        }
    }

    /// Whether we promise a yes: what is kept in memory is not remembered after a restart, and says
    /// so.
    pub(crate) fn is_owed(&self, way: Way) -> bool {
        let across_a_restart = matches!(self.check, Check::Restart | Check::Killed);
        !(across_a_restart && way.keeping() == Keeping::Memory)
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "question": self.check.question(),
            "yes": self.yes,
            "effects": self.effects,
            "said": self.said,
        })
    }
}

/// Asks everything of one way.
pub(crate) async fn examine(ground: &Ground, way: Way) -> Result<Vec<Finding>, BenchError> {
    let mut stage = ground.stage(way, Purpose::Examine { lease: None }).await?;
    let mut findings = vec![
        retries::twice(&stage).await?,
        retries::at_once(&stage).await?,
        retries::other_body(&stage).await?,
        retries::failure(&stage).await?,
        crashes::restart(&mut stage).await?,
    ];
    stage.end().await?;

    let mut stage = ground.stage(way, Purpose::Examine { lease: Some(LEASE) }).await?;
    findings.push(crashes::slow(&stage).await?);
    findings.push(crashes::killed(&mut stage).await?);
    stage.end().await?;

    let mut stage = ground.stage(way, Purpose::Examine { lease: Some(LEASE) }).await?;
    findings.push(crashes::paused(&mut stage).await?);
    stage.end().await?;
    Ok(findings)
}

/// Why the figures of a way with these findings must not be compared: it does not do the job even
/// while everything runs.
pub(crate) fn disqualified(findings: &[Finding]) -> Option<String> {
    let failed = findings.iter().find(|finding| {
        matches!(finding.check, Check::Twice | Check::AtOnce) && finding.yes == Some(false)
    });
    failed.map(|finding| format!("{} {}", finding.check.question(), finding.said))
}
