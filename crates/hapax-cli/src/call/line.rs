//! What is told: the same facts as JSON for programs and in words for people.

use std::{error::Error, time::Duration};

use hapax::{
    client::{Answer, CallError, RetryError, Unfinished},
    retry::{AttemptResult, Conclusion},
};
use serde::Serialize;

/// Something that happened. The names of its fields are documented and stay.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(super) enum CallLine<'a> {
    /// The operation has a name in a journal.
    Journalled { name: &'a str, journal: String },
    /// An attempt sets out.
    Begun { name: Option<&'a str>, attempt: u32, limit_ms: u64 },
    /// An attempt is over.
    Ended {
        name: Option<&'a str>,
        attempt: u32,
        heard: &'static str,
        status: Option<u16>,
        error: Option<String>,
    },
    /// The next attempt follows after a pause.
    Pausing { name: Option<&'a str>, attempt: u32, pause_ms: u64 },
    /// Somebody else has the operation, and is waited for.
    Waiting { name: &'a str, ends_in_ms: u64 },
    /// It is over.
    Concluded(Concluded<'a>),
    /// A signal ended it here.
    Interrupted {
        name: Option<&'a str>,
        key: Option<String>,
        signal: &'static str,
        resume: Option<String>,
    },
    /// It could not be pursued.
    Failed { name: Option<&'a str>, error: String },
}

/// What an operation came to.
#[derive(Debug, Default, Serialize)]
pub(super) struct Concluded<'a> {
    name: Option<&'a str>,
    key: Option<&'a str>,
    conclusion: &'static str,
    status: Option<u16>,
    attempts: Option<u32>,
    replayed: bool,
    recorded: bool,
    reason: Option<String>,
    warnings: Vec<String>,
    resume: Option<String>,
}

impl<'a> Concluded<'a> {
    pub(super) fn answered(
        name: Option<&'a str>,
        conclusion: Conclusion,
        answer: &'a Answer,
    ) -> Self {
        Self {
            name,
            key: answer.key(),
            conclusion: word(conclusion),
            status: Some(answer.status().as_u16()),
            attempts: Some(answer.attempts()),
            replayed: answer.replayed(),
            recorded: answer.recorded(),
            warnings: answer.warnings().iter().map(ToString::to_string).collect(),
            ..Self::default()
        }
    }

    /// Without an answer that counts; `None` if the error says nothing about the operation.
    pub(super) fn unanswered(
        name: Option<&'a str>,
        error: &'a CallError,
        resume: Option<String>,
    ) -> Option<Self> {
        let conclusion = word(error.conclusion()?);
        let ended = unfinished(error);
        let reason =
            ended.map_or_else(|| error.source().map(crate::sentence), |it| Some(reason(it)));
        Some(Self {
            name,
            key: error.key(),
            conclusion,
            status: error.answer().map(|answer| answer.status().as_u16()),
            attempts: ended.map(|ended| ended.attempts),
            reason: Some(reason.unwrap_or_default()),
            resume,
            ..Self::default()
        })
    }

    fn words(&self) -> String {
        let mut said = self.conclusion.replace('_', " ");
        if let Some(status) = self.status.filter(|_| self.reason.is_none()) {
            said.push_str(&format!(": {status}"));
        }
        if self.recorded {
            said.push_str(", as the journal has it; nothing was sent");
        } else if let Some(attempts) = self.attempts {
            let plural = if attempts == 1 { "" } else { "s" };
            said.push_str(&format!(" after {attempts} attempt{plural}"));
        }
        if let Some(reason) = &self.reason {
            said.push_str(&format!(": {reason}"));
        }
        if self.replayed {
            said.push_str(", the first answer told again");
        }
        for warning in &self.warnings {
            said.push_str(&format!("\nwarning: {warning}"));
        }
        if self.conclusion == word(Conclusion::Unknown) {
            said.push_str("\nit may have happened");
        }
        if let Some(key) = self.key.filter(|_| self.reason.is_some()) {
            said.push_str(&format!("\nits key is {key}"));
        }
        if let Some(resume) = &self.resume {
            said.push_str(&format!("\nask again: {resume}"));
        } else if self.reason.is_some() && self.key.is_some() {
            said.push_str("\nask again with --key");
        }
        said
    }
}

impl CallLine<'_> {
    /// Whether it is said even to whoever wants to hear nothing.
    pub(super) fn is_grave(&self) -> bool {
        match self {
            Self::Concluded(concluded) => {
                concluded.conclusion != word(Conclusion::Done) || !concluded.warnings.is_empty()
            }
            Self::Interrupted { .. } | Self::Failed { .. } => true,
            Self::Journalled { .. }
            | Self::Begun { .. }
            | Self::Ended { .. }
            | Self::Pausing { .. }
            | Self::Waiting { .. } => false,
        }
    }

    /// Whether it only says what goes on at this moment.
    pub(super) fn passes(&self) -> bool {
        matches!(self, Self::Begun { .. } | Self::Pausing { .. } | Self::Waiting { .. })
    }

    pub(super) fn words(&self) -> String {
        match self {
            Self::Journalled { name, journal } => format!("{name} is kept in {journal}"),
            Self::Begun { attempt, .. } => format!("attempt {attempt}"),
            Self::Ended { attempt, heard, status, error, .. } => {
                let heard = heard.replace('_', " ");
                match (status, error) {
                    (Some(status), _) => format!("attempt {attempt}: {status} ({heard})"),
                    (None, Some(error)) => format!("attempt {attempt}: {heard}: {error}"),
                    (None, None) => format!("attempt {attempt}: {heard}"),
                }
            }
            Self::Pausing { attempt, pause_ms, .. } => {
                format!(
                    "attempt {attempt} failed; the next in {:.1?}",
                    Duration::from_millis(*pause_ms)
                )
            }
            Self::Waiting { name, ends_in_ms } => format!(
                "{name} is pursued by another process; waiting (for {:.0?} if that one is gone)",
                Duration::from_millis(*ends_in_ms)
            ),
            Self::Concluded(concluded) => concluded.words(),
            Self::Interrupted { key, signal, resume, .. } => match (resume, key) {
                (Some(resume), _) => {
                    format!("{signal}: it may have happened; finish it with: {resume}")
                }
                (None, Some(key)) => {
                    format!("{signal}: it may have happened; ask again with --key {key}")
                }
                (None, None) => format!("{signal}: nothing is left to finish"),
            },
            Self::Failed { error, .. } => error.clone(),
        }
    }
}

/// What was heard, as one word.
pub(super) fn heard(result: AttemptResult) -> &'static str {
    match result {
        AttemptResult::NotSent => "not_sent",
        AttemptResult::Unanswered => "unanswered",
        AttemptResult::NothingRan => "nothing_ran",
        AttemptResult::InFlight => "in_flight",
        AttemptResult::KeyReused => "key_reused",
        AttemptResult::InDoubt => "in_doubt",
        AttemptResult::NotRetained => "not_retained",
        AttemptResult::Gone => "gone",
        AttemptResult::Success { .. }
        | AttemptResult::NotNow
        | AttemptResult::Refused
        | AttemptResult::Failed => "answered",
    }
}

pub(super) fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// As the journal has it.
fn word(conclusion: Conclusion) -> &'static str {
    match conclusion {
        Conclusion::Done => "done",
        Conclusion::Refused => "refused",
        Conclusion::Unknown => "unknown",
        Conclusion::GaveUp => "gave_up",
    }
}

fn unfinished(error: &CallError) -> Option<&Unfinished> {
    if let CallError::Unknown(unfinished) | CallError::GaveUp(unfinished) = error {
        return Some(unfinished);
    }
    None
}

/// Why it was left so, without the words and numbers that are told beside it.
fn reason(unfinished: &Unfinished) -> String {
    let tried = unfinished.reason.downcast_ref::<RetryError>();
    match tried.and_then(|error| Some((error.tried()?.stop, error.source()))) {
        Some((stop, Some(cause))) => format!("{stop}: {}", crate::sentence(cause)),
        Some((stop, None)) => stop.to_string(),
        None => crate::sentence(&*unfinished.reason),
    }
}
