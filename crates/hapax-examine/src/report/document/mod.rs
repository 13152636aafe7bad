//! The report as JSON: stable, and read back to be compared, continued, or shown in another form.
//!
//! `schema/report.schema.json` says the same to others.

use serde::{Deserialize, Serialize};
use thiserror::Error;

mod exchange;
mod name;

pub use self::exchange::{
    CutDocument, CutManner, CutMessage, EndDocument, ExchangeDocument, MessageDocument,
};
use self::name::{letter, level};
use crate::{
    Coverage, ExaminationExit, Grade, GradeBasis, GradeLetter, OracleLevel, ProbeStanding, Standing,
};

/// What a report says it is.
pub const REPORT_FORMAT: &str = "hapax-verify/1";

/// A report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportDocument {
    /// [`REPORT_FORMAT`].
    pub format: String,
    /// What wrote it.
    pub program: String,
    /// When, in words of whoever asked for it.
    pub when: String,
    /// What was examined.
    pub target: TargetDocument,
    /// By which it can be repeated.
    pub seed: String,
    /// Who counted effects.
    pub oracle: OracleDocument,
    /// How many operations were begun.
    pub operations: u32,
    /// How long it took.
    pub took_micros: u64,
    /// What was found out first.
    pub controls: Vec<ControlDocument>,
    /// What it comes to.
    pub grade: GradeDocument,
    /// How much was looked at.
    pub coverage: CoverageDocument,
    /// Each probe that was chosen.
    pub probes: Vec<ProbeDocument>,
}

/// What was examined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetDocument {
    /// Where it is: the same API at each.
    pub addresses: Vec<String>,
    /// How its effect is asked for.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// The header that keys are sent in.
    pub key_header: String,
}

/// Who counted effects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OracleDocument {
    /// `O0` to `O3`.
    #[serde(with = "level")]
    pub level: OracleLevel,
    /// In words.
    pub text: String,
}

/// What one control found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControlDocument {
    /// `C0`.
    pub id: String,
    /// What it asks.
    pub question: String,
    /// Whether it holds.
    pub verdict: ControlOutcome,
    /// What was learned, or why not.
    pub text: String,
}

/// Whether a control holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlOutcome {
    /// It does.
    Holds,
    /// It does not: nothing can be graded.
    Refuted,
    /// There was nothing to look at.
    Skipped,
}

/// What it comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum GradeDocument {
    /// A letter.
    Graded {
        /// Which.
        #[serde(with = "letter")]
        letter: GradeLetter,
        /// Whether nobody counted effects.
        effects_unproven: bool,
        /// Why it is no better.
        reasons: Vec<String>,
        /// What else would have to be known for a better one.
        wanting: Vec<String>,
    },
    /// None.
    NotGraded {
        /// Why not.
        why: String,
    },
}

/// How many of all probes came to a conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoverageDocument {
    /// Those that did.
    pub conclusive: usize,
    /// All there are.
    pub total: usize,
}

/// A probe with all that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProbeDocument {
    /// `V01`.
    pub id: String,
    /// `retry-after-success`.
    pub name: String,
    /// What it asks.
    pub question: String,
    /// What it found.
    #[serde(flatten)]
    pub verdict: VerdictDocument,
    /// How it is repeated.
    pub replay: String,
    /// How far it went, if that makes a difference: `100 other keys between`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<String>,
    /// How close duplicates came, if there were races.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub races: Option<RacesDocument>,
    /// What was done in between, and when.
    pub notes: Vec<ProbeNoteDocument>,
    /// What went over the wire.
    pub exchanges: Vec<ExchangeDocument>,
    /// How long it took.
    pub took_micros: u64,
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "kebab-case")]
pub enum VerdictDocument {
    /// The property was observed.
    Pass {
        /// In so many trials.
        trials: u32,
    },
    /// It does not hold.
    Fail {
        /// In so many trials.
        trials: u32,
        /// What is wrong.
        defects: Vec<DefectDocument>,
    },
    /// What it asks about did not come about, or could not be seen.
    Inconclusive {
        /// Why, and what would help.
        reason: String,
        /// Whether it was run at all.
        was_run: bool,
    },
}

/// Something that was seen to be wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefectDocument {
    /// `S0` to `S3`.
    pub class: String,
    /// The best letter that it allows.
    #[serde(with = "letter")]
    pub at_most: GradeLetter,
    /// What happened.
    pub sentence: String,
    /// What to do about it.
    pub advice: String,
    /// The exchanges that show it, by number.
    pub shown_by: Vec<u32>,
    /// Commands for a shell that do much the same.
    pub reproducer: String,
}

/// How close duplicates came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RacesDocument {
    /// How many races there were.
    pub trials: usize,
    /// How many requests were under way at once, at most, of those that were kept.
    pub duplicates: usize,
    /// In how many races all last bytes left within 200 microseconds.
    pub at_once: usize,
    /// Half of the races were no wider apart.
    pub median_micros: u64,
    /// 95 of 100 were no wider apart.
    pub p95_micros: u64,
}

/// Something that was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeNoteDocument {
    /// When, since the beginning of the probe.
    pub at_micros: u64,
    /// What.
    pub text: String,
}

/// Why a report cannot be used.
#[derive(Debug, Error)]
pub enum ReportFault {
    /// It is damaged, or no report at all.
    #[error("it is no report of this program: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// Another version wrote it, or another program.
    #[error("it is of the format `{found}`, and `{REPORT_FORMAT}` is read")]
    Format {
        /// What it says it is.
        found: String,
    },
    /// It is about something else.
    #[error("it is about {found}, and this is about {wanted}")]
    OtherTarget {
        /// What it is about.
        found: String,
        /// What it should be about.
        wanted: String,
    },
}

impl ReportDocument {
    /// Reads one back.
    pub fn read(json: &str) -> Result<Self, ReportFault> {
        let mark: FormatMark = serde_json::from_str(json)?;
        if mark.format != REPORT_FORMAT {
            return Err(ReportFault::Format { found: mark.format });
        }
        Ok(serde_json::from_str(json)?)
    }

    /// As it is written to a file.
    pub fn to_json(&self) -> Result<String, ReportFault> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// This one and what an earlier one, which was interrupted, knows of other probes.
    pub fn continuing(mut self, earlier: Self) -> Result<Self, ReportFault> {
        if earlier.target != self.target {
            let (found, wanted) = (earlier.target.describe(), self.target.describe());
            return Err(ReportFault::OtherTarget { found, wanted });
        }
        let ids: Vec<_> = self.probes.iter().map(|probe| probe.id.clone()).collect();
        self.probes.extend(earlier.probes.into_iter().filter(|probe| !ids.contains(&probe.id)));
        self.probes.sort_by(|a, b| a.id.cmp(&b.id));
        self.operations = self.operations.saturating_add(earlier.operations);
        self.took_micros = self.took_micros.saturating_add(earlier.took_micros);
        // Both must have counted for what is known now to be proven.
        if earlier.oracle.level < self.oracle.level {
            self.oracle = earlier.oracle;
        }
        let basis = self.basis();
        self.grade = basis.grade().into();
        self.coverage = basis.coverage().into();
        Ok(self)
    }

    /// What its grade is made of.
    pub fn basis(&self) -> GradeBasis {
        let refuted = |control: &&ControlDocument| control.verdict == ControlOutcome::Refuted;
        let standing = |probe: &ProbeDocument| {
            let standing = match &probe.verdict {
                VerdictDocument::Pass { trials } => Standing::Held { trials: *trials },
                VerdictDocument::Fail { trials, defects } => Standing::Broken {
                    trials: *trials,
                    at_most: defects.iter().map(|defect| defect.at_most).collect(),
                },
                VerdictDocument::Inconclusive { was_run: true, .. } => Standing::Open,
                VerdictDocument::Inconclusive { was_run: false, .. } => Standing::NotRun,
            };
            ProbeStanding { id: probe.id.clone(), standing }
        };
        GradeBasis {
            oracle: self.oracle.level,
            refuted: self.controls.iter().find(refuted).map(|control| control.text.clone()),
            probes: self.probes.iter().map(standing).collect(),
        }
    }

    /// What a program that shows it ends with.
    pub fn exit(&self) -> ExaminationExit {
        self.basis().exit()
    }

    /// Everything that was found, the worst first.
    pub fn findings(&self) -> Vec<(&ProbeDocument, &DefectDocument)> {
        let mut findings: Vec<_> = self
            .probes
            .iter()
            .flat_map(|probe| probe.defects().iter().map(move |defect| (probe, defect)))
            .collect();
        findings.sort_by_key(|(_, defect)| defect.at_most);
        findings
    }
}

impl TargetDocument {
    /// `POST http://127.0.0.1:8080/payments`.
    pub fn describe(&self) -> String {
        format!("{} {}", self.method, self.url())
    }

    /// Where it is, first of all.
    pub fn url(&self) -> String {
        format!("{}{}", self.addresses.first().map_or("", String::as_str), self.path)
    }
}

impl ProbeDocument {
    /// What is wrong.
    pub fn defects(&self) -> &[DefectDocument] {
        match &self.verdict {
            VerdictDocument::Fail { defects, .. } => defects,
            VerdictDocument::Pass { .. } | VerdictDocument::Inconclusive { .. } => &[],
        }
    }

    /// The exchanges that show a defect, of those that were kept; all where it names none.
    pub fn shown_by(&self, defect: &DefectDocument) -> Vec<&ExchangeDocument> {
        let names_all = defect.shown_by.is_empty();
        let shows = |one: &&ExchangeDocument| names_all || defect.shown_by.contains(&one.number);
        let mut shown: Vec<_> = self.exchanges.iter().filter(shows).collect();
        shown.sort_by_key(|exchange| (exchange.began_micros, exchange.number));
        shown
    }
}

impl From<Grade> for GradeDocument {
    fn from(grade: Grade) -> Self {
        match grade {
            Grade::Given(given) => Self::Graded {
                letter: given.letter,
                effects_unproven: given.effects_unproven,
                reasons: given.reasons,
                wanting: given.wanting,
            },
            Grade::Withheld { why } => Self::NotGraded { why },
        }
    }
}

impl From<Coverage> for CoverageDocument {
    fn from(coverage: Coverage) -> Self {
        Self { conclusive: coverage.conclusive, total: coverage.total }
    }
}

#[derive(Debug, Deserialize)]
struct FormatMark {
    format: String,
}
