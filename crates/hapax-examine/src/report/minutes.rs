//! From what an examination knows to what its report says. Secrets stay behind here.

use std::time::Duration;

use super::{
    document::{
        ControlDocument, ControlOutcome, DefectDocument, OracleDocument, ProbeDocument,
        ProbeNoteDocument, REPORT_FORMAT, RacesDocument, ReportDocument, TargetDocument,
        VerdictDocument,
    },
    redaction::Redaction,
    reproducer::{bare_command, replay_command, reproducer},
    text::WrittenText,
    transcript::exchange_document,
};
use crate::{
    ApiUnderTest, Control, ControlVerdict, Defect, ExaminationRecord, Exchange, JsonPath,
    ProbeRecord, ProbeVerdict, statistics::RaceOverlap,
};

impl ReportDocument {
    /// The report on an examination of this API; `when` says when it was, in the caller's words.
    pub fn of(record: &ExaminationRecord, api: &ApiUnderTest, when: &str) -> Self {
        let redaction = Redaction::of(api);
        let target = TargetDocument {
            addresses: api.addresses.iter().map(ToString::to_string).collect(),
            method: api.method.clone(),
            path: redaction.text(&api.path),
            key_header: api.key.name.clone(),
        };
        let (seed, id) = (record.seed.to_string(), api.id.clone());
        let minutes = Minutes { redaction, target, seed, id };
        let oracle =
            OracleDocument { level: record.oracle, text: minutes.text(&record.oracle_text) };
        Self {
            format: REPORT_FORMAT.to_owned(),
            program: format!("hapax {}", env!("CARGO_PKG_VERSION")),
            when: when.to_owned(),
            oracle,
            operations: record.operations,
            took_micros: micros(record.took),
            controls: record.controls.iter().map(|control| minutes.control(control)).collect(),
            grade: record.grade().into(),
            coverage: record.coverage().into(),
            probes: record.probes.iter().map(|probe| minutes.probe(probe)).collect(),
            seed: minutes.seed,
            target: minutes.target,
        }
    }
}

impl ReportDocument {
    /// The same, where each probe is repeated by this command, to which its seed and its probe are added.
    ///
    /// The command has every option of the examination but those, as a shell takes them.
    pub fn repeated_by(mut self, api: &ApiUnderTest, command: &str) -> Self {
        let command = Redaction::of(api).text(command);
        for probe in &mut self.probes {
            probe.replay = replay_command(&command, &self.seed, &probe.id);
        }
        self
    }
}

/// What all parts of one report have in common.
struct Minutes {
    redaction: Redaction,
    target: TargetDocument,
    seed: String,
    /// Where answers name their effect.
    id: Option<JsonPath>,
}

impl Minutes {
    fn control(&self, control: &Control) -> ControlDocument {
        let (verdict, text) = match &control.verdict {
            ControlVerdict::Holds(text) => (ControlOutcome::Holds, text),
            ControlVerdict::Refuted(text) => (ControlOutcome::Refuted, text),
            ControlVerdict::Skipped(text) => (ControlOutcome::Skipped, text),
        };
        ControlDocument {
            id: control.id.to_owned(),
            question: control.question.to_owned(),
            verdict,
            text: self.text(text),
        }
    }

    fn probe(&self, record: &ProbeRecord) -> ProbeDocument {
        let exchanges = record.exchanges.iter();
        let mut document = ProbeDocument {
            id: record.probe.id.to_owned(),
            name: record.probe.name.to_owned(),
            question: record.probe.question.to_owned(),
            verdict: VerdictDocument::Pass { trials: 0 },
            replay: replay_command(&bare_command(&self.target), &self.seed, record.probe.id),
            reach: record.reach.as_deref().map(|reach| self.text(reach)),
            races: races(record),
            notes: record.notes.iter().map(|(at, text)| self.note(*at, text)).collect(),
            exchanges: exchanges
                .map(|one| exchange_document(one, self.id.as_ref(), &self.redaction))
                .collect(),
            took_micros: micros(record.took),
        };
        document.verdict = match &record.verdict {
            ProbeVerdict::Pass { trials } => VerdictDocument::Pass { trials: *trials },
            ProbeVerdict::Fail { trials, defects } => VerdictDocument::Fail {
                trials: *trials,
                defects: defects.iter().map(|defect| self.defect(&document, defect)).collect(),
            },
            ProbeVerdict::Inconclusive { reason } => {
                VerdictDocument::Inconclusive { reason: self.text(reason), was_run: record.was_run }
            }
        };
        document
    }

    fn defect(&self, probe: &ProbeDocument, defect: &Defect) -> DefectDocument {
        let mut document = DefectDocument {
            class: defect.class.name().to_owned(),
            at_most: defect.class.at_most(),
            sentence: self.text(&defect.sentence),
            advice: defect.advice.to_owned(),
            shown_by: defect.shown_by.clone(),
            reproducer: String::new(),
        };
        document.reproducer = reproducer(&self.target, probe, &document);
        document
    }

    fn note(&self, at: Duration, text: &str) -> ProbeNoteDocument {
        ProbeNoteDocument { at_micros: micros(at), text: self.text(text) }
    }

    /// Text in which the server's words may be.
    fn text(&self, text: &str) -> String {
        self.redaction.text(&WrittenText::of(text.as_bytes()).text)
    }
}

/// How close duplicates came.
fn races(record: &ProbeRecord) -> Option<RacesDocument> {
    let overlap = RaceOverlap::of(&record.spreads)?;
    Some(RacesDocument {
        trials: overlap.races,
        duplicates: most_at_once(&record.exchanges),
        at_once: overlap.at_once,
        median_micros: micros(overlap.median),
        p95_micros: micros(overlap.p95),
    })
}

/// How many of these were under way at one time, at most.
fn most_at_once(exchanges: &[Exchange]) -> usize {
    let under_way_at =
        |at: Duration| exchanges.iter().filter(|one| one.began <= at && at < one.ended).count();
    exchanges.iter().map(|one| under_way_at(one.began)).max().unwrap_or(0)
}

pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
