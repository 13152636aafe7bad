//! Examines from outside whether an HTTP API is safe to retry.
//!
//! An [`Examination`] says what is examined: an API that has an effect, how that is asked for, and an
//! [`EffectOracle`] that can tell how often it happened. [`Examination::run`] first makes sure that anything can be
//! told at all (`controls`), then runs the [`PROBES`] one after the other, and returns an [`ExaminationRecord`]: a
//! verdict for each probe with what went over the wire, and a grade.
//!
//! - `wire` sends bytes: whole requests, races whose last bytes leave together, requests and answers that are cut at
//!   a byte; it knows no meaning.
//! - `probe` has a file for each probe. A probe asks through the [`Examiner`], and judges what it heard.
//! - `judge` and `overlap` say what the answers to duplicates mean.
//! - `oracle` counts effects.
//! - `recovery` kills and starts the server, and retries what it was killed in; `memory` is what a run must remember
//!   for another one that resumes it days later.
//! - `grade` and `statistics` say what all of it comes to, and how much that is worth.
//! - `report` makes a [`ReportDocument`] of it, without secrets, and shows that in many forms; `baseline` compares two.
//! - `outline` says what would be run, `consent` whom it may ask; `profile` and `openapi` know what need not be typed.
//!
//! It shares no code with the rest of Hapax, so that it judges Hapax as it judges others.

mod address;
mod api;
mod baseline;
mod body;
mod budget;
mod consent;
mod controls;
mod defect;
mod examination;
mod examiner;
mod exchange;
mod findings;
mod grade;
mod hooks;
mod judge;
mod key_pair;
mod learned;
mod log;
mod memory;
mod openapi;
mod oracle;
mod outline;
mod overlap;
mod probe;
mod profile;
mod recovery;
mod report;
mod request;
mod shell;
mod statistics;
mod wire;
mod yaml;

pub use self::{
    address::{HttpAddress, HttpAddressError},
    api::{ApiCredentials, ApiUnderTest, BodyTemplate, CredentialHeaders, KeyHeader, KeySyntax},
    baseline::{BaselineComparison, ComparedFinding},
    budget::EffectBudget,
    consent::{ConsentError, ConsentScope, LiveCredential, ReachedHost},
    controls::{Control, ControlVerdict},
    defect::{Defect, DefectClass},
    examination::{
        DeclaredConduct, Examination, ExaminationBounds, ExaminationEvent, ExaminationRecord,
    },
    examiner::{Examiner, ProbeInterruption},
    exchange::{Exchange, ExchangeEnd, RawAnswer, WireProtocol},
    grade::{
        Coverage, ExaminationExit, GivenGrade, Grade, GradeBasis, GradeLetter, ProbeStanding,
        Standing,
    },
    hooks::{Hook, Hooks},
    learned::LearnedConduct,
    log::ProbeLog,
    memory::{AwaitedKey, ExaminationMemory},
    openapi::{ApiProposal, OpenApiError, ProposedRoute},
    oracle::{
        CountByCommand, CountByGet, EffectOracle, JsonPath, OracleFault, OracleLevel,
        UpstreamConduct, UpstreamDouble, WebhookArrival, WebhookSink,
    },
    outline::{ExaminationOutline, OutlinedProbe},
    probe::{PROBES, Probe, ProbeNeed, ProbeRecord, ProbeVerdict},
    profile::{RefusalShape, VENDOR_PROFILES, VendorProfile, VendorRefusals},
    report::{
        ControlDocument, ControlOutcome, CoverageDocument, CutDocument, CutManner, CutMessage,
        DefectDocument, EndDocument, ExchangeDocument, GradeDocument, MessageDocument,
        OracleDocument, ProbeDocument, ProbeNoteDocument, REDACTED, REPORT_FORMAT, RacesDocument,
        Redaction, ReportDocument, ReportFault, TargetDocument, TerminalColour, VerdictDocument,
        render_badge, render_html, render_junit, render_sarif, render_terminal,
    },
    request::ExamRequest,
    statistics::{AT_ONCE, RaceOverlap, unseen_rate_max, unseen_text},
    wire::{CutEnd, Wire, WireCut, WireError},
};
