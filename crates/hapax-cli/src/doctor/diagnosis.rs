//! What a check came to.

use std::fmt;

/// What one check found, and what is to be feared from it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Diagnosis {
    /// The name of the check, for people and programs.
    pub(super) check: &'static str,
    /// What was found.
    pub(super) found: String,
    /// `None` where it is well.
    pub(super) concern: Option<Concern>,
}

/// Why something is not well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Concern {
    pub(super) severity: Severity,
    /// What may happen, in one sentence.
    pub(super) risk: String,
    /// What to type, or to do.
    pub(super) advice: String,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// Good to know.
    Note,
    /// The promise holds, and something makes it weaker or will end it.
    Warning,
    /// The promise does not hold, or nothing can be served.
    Danger,
}

impl Diagnosis {
    /// Something that is well.
    pub(super) fn new(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, found: found.into(), concern: None }
    }

    pub(super) fn note(self, risk: impl Into<String>, advice: impl Into<String>) -> Self {
        self.with(Severity::Note, risk.into(), advice.into())
    }

    pub(super) fn warning(self, risk: impl Into<String>, advice: impl Into<String>) -> Self {
        self.with(Severity::Warning, risk.into(), advice.into())
    }

    pub(super) fn danger(self, risk: impl Into<String>, advice: impl Into<String>) -> Self {
        self.with(Severity::Danger, risk.into(), advice.into())
    }

    fn with(self, severity: Severity, risk: String, advice: String) -> Self {
        Self { concern: Some(Concern { severity, risk, advice }), ..self }
    }

    /// `ok`, or how bad it is.
    pub(super) fn level(&self) -> &'static str {
        self.concern.as_ref().map_or("ok", |concern| concern.severity.as_str())
    }

    /// `None` where it is well.
    pub(super) fn severity(&self) -> Option<Severity> {
        self.concern.as_ref().map(|concern| concern.severity)
    }
}

impl Severity {
    pub(super) const ALL: [Self; 3] = [Self::Note, Self::Warning, Self::Danger];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Danger => "danger",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What is said where an area could not be looked at.
pub(super) fn unseen(check: &'static str, why: &str) -> Diagnosis {
    Diagnosis::new(check, format!("could not be looked at: {why}")).note(
        "what is not seen cannot be judged",
        "run this as a role that may look, or look yourself",
    )
}
