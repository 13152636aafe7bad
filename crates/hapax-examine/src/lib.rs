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
//! - `grade` and `statistics` say what all of it comes to, and how much that is worth.
//!
//! It shares no code with the rest of Hapax, so that it judges Hapax as it judges others.

mod address;
mod api;
mod budget;
mod controls;
mod defect;
mod examination;
mod examiner;
mod exchange;
mod hooks;
mod judge;
mod learned;
mod log;
mod oracle;
mod overlap;
mod probe;
mod request;
mod wire;

pub use self::{
    address::{AddressError, HttpAddress},
    api::{ApiUnderTest, BodyTemplate, CredentialHeaders, Credentials, KeyHeader, KeySyntax},
    budget::EffectBudget,
    controls::{Control, ControlVerdict},
    defect::{Defect, DefectClass},
    examination::{
        DeclaredConduct, Examination, ExaminationBounds, ExaminationEvent, ExaminationRecord,
    },
    examiner::{Examiner, Interruption},
    exchange::{Exchange, ExchangeEnd, RawAnswer, WireProtocol},
    hooks::{Hook, Hooks},
    learned::LearnedConduct,
    log::ProbeLog,
    oracle::{CountByGet, EffectOracle, JsonPath, OracleFault, OracleLevel},
    probe::{PROBES, Probe, ProbeNeed, ProbeRecord, ProbeVerdict},
    request::ExamRequest,
    wire::{CutEnd, Wire, WireCut, WireError},
};
