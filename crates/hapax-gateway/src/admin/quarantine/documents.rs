//! What is told about a store's past, and what people send to have its quarantine lifted.

use hapax_core::incarnation::{IncarnationReading, Lifted, ProcessMark, Quarantine};
use serde::{Deserialize, Serialize};

/// Why keys that are not in the store are not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantineDocument {
    /// Since when, by the store's clock; what lifting it has to name.
    pub since: String,
    /// What was noticed: `failover`, `restore` or `declared`.
    pub cause: String,
    /// The same in words.
    pub because: String,
    /// What was acknowledged after this may be missing; nothing where nobody can tell.
    pub missing_after: Option<String>,
    /// Which database it was before.
    pub before: String,
}

/// Which database the store is, and what is kept about its past.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastDocument {
    /// The store's clock.
    pub now: String,
    /// Which database it is, by its own account.
    pub incarnation: String,
    /// Why keys that are not in it are not run; nothing if they are.
    pub quarantine: Option<QuarantineDocument>,
    /// Who last had them run again, and why.
    pub lifted: Option<LiftedDocument>,
    /// Who is, or was, at work on it.
    pub processes: Vec<ProcessDocument>,
}

/// The word that keys which are not in the store may be run again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiftedDocument {
    /// When, by the store's clock.
    pub at: String,
    /// Who said so; `hapax` where everybody who was at work vouched.
    pub who: String,
    /// Why.
    pub why: String,
}

/// A process that runs operations on the store, as it last showed itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessDocument {
    /// Its random name.
    pub process: String,
    /// When it showed itself, by the store's clock.
    pub seen_at: String,
    /// Whether that was before the store became what it is.
    pub before_the_change: bool,
    /// Whether its commits waited for a standby.
    pub synchronous: bool,
    /// Whether everything it was told is known to be there.
    pub vouches: bool,
}

/// Lifts a quarantine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiftDocument {
    /// Since when it is, as the person was told.
    pub since: String,
    /// Who they are; left out by somebody whom a provider signed in.
    #[serde(default)]
    pub who: String,
    /// Why they do it.
    pub why: String,
    /// Whether only to say what would follow, or why it would be refused.
    #[serde(default)]
    pub dry_run: bool,
}

/// What would follow if a quarantine were lifted now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiftForecast {
    /// In words.
    pub would: String,
}

/// A quarantine that was lifted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiftChange {
    /// What was done.
    pub done: String,
}

impl QuarantineDocument {
    pub(in crate::admin) fn of(quarantine: &Quarantine) -> Self {
        Self {
            since: quarantine.since.to_string(),
            cause: quarantine.cause.as_str().to_owned(),
            because: quarantine.cause.in_words().to_owned(),
            missing_after: quarantine.missing_after().map(|at| at.to_string()),
            before: quarantine.before.to_string(),
        }
    }
}

impl PastDocument {
    pub(super) fn of(reading: &IncarnationReading) -> Self {
        let mark = reading.mark.as_ref();
        let process = |process| ProcessDocument::of(process, reading);
        Self {
            now: reading.now.to_string(),
            incarnation: reading.incarnation.to_string(),
            quarantine: mark.and_then(|mark| mark.quarantine.as_ref()).map(QuarantineDocument::of),
            lifted: mark.and_then(|mark| mark.lifted.as_ref()).map(LiftedDocument::said),
            processes: reading.processes.iter().map(process).collect(),
        }
    }
}

impl LiftedDocument {
    fn said(Lifted { at, reason }: &Lifted) -> Self {
        let (who, why) = (reason.who().to_owned(), reason.why().to_owned());
        Self { at: at.to_string(), who, why }
    }
}

impl ProcessDocument {
    fn of(process: &ProcessMark, reading: &IncarnationReading) -> Self {
        Self {
            process: format!("{:016x}", process.process),
            seen_at: process.seen_at.to_string(),
            before_the_change: process.incarnation != reading.incarnation,
            synchronous: process.synchronous,
            vouches: process.vouches,
        }
    }
}

impl LiftForecast {
    pub(super) fn of(quarantine: &Quarantine) -> Self {
        let lost = quarantine.missing_after().map_or_else(
            || "in what the store has forgotten".to_owned(),
            |at| format!("after {at}, in what may be missing"),
        );
        let would = format!(
            "Keys that are not in the store would be run again, within seconds, by every process on it; \
             one that was used {lost} would then be run a second time"
        );
        Self { would }
    }
}
