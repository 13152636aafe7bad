//! What a report says in everyday words.

use std::time::Duration;

use super::document::{
    ControlOutcome, ExchangeDocument, GradeDocument, OracleDocument, ProbeDocument, RacesDocument,
    ReportDocument, VerdictDocument,
};
use crate::{
    GradeLetter, OracleLevel,
    statistics::{time_text, unseen_text},
};

/// A letter, or that there is none.
pub(super) fn letter_text(grade: &GradeDocument) -> &'static str {
    match grade {
        GradeDocument::Graded { letter, .. } => letter.name(),
        GradeDocument::NotGraded { .. } => "not graded",
    }
}

/// How much was looked at.
pub(super) fn coverage_text(report: &ReportDocument) -> String {
    format!("{} of {} probes conclusive", report.coverage.conclusive, report.coverage.total)
}

/// What all of it means for somebody who calls this API.
pub(super) fn meaning(report: &ReportDocument) -> String {
    if let GradeDocument::NotGraded { why } = &report.grade {
        return format!("Nothing can be said about this API: {why}.");
    }
    let Some((_, worst)) = report.findings().into_iter().next() else {
        let unsure = match report.oracle.level {
            OracleLevel::Answers | OracleLevel::Names => {
                " Nobody counted effects, so what happened behind the answers is not known."
            }
            OracleLevel::Counted | OracleLevel::Received => "",
        };
        return format!(
            "Nothing wrong was found by the probes that came to a conclusion ({}).{unsure}",
            coverage_text(report)
        );
    };
    let meaning = match worst.at_most {
        GradeLetter::F => {
            "Somebody who asks again, because an answer was lost or late, can cause the same thing \
             twice, lose it, or hear what belongs to somebody else. Mend this before anybody retries."
        }
        GradeLetter::D => {
            "What was begun is not doubled or lost, as far as was seen, but a request can get stuck: \
             whoever asks again never gets an answer."
        }
        GradeLetter::C => {
            "Retries of an unchanged request do no harm, as far as was seen, but mistakes of clients \
             stay hidden: they are told that something was done that was not."
        }
        GradeLetter::B => {
            "Retries of an unchanged request do no harm, as far as was seen, but what is answered to \
             them is not what clients may rely on."
        }
        GradeLetter::AMinus | GradeLetter::A | GradeLetter::APlus => {
            "Retries do no harm, as far as was seen. Some things make the work of clients harder than \
             it must be."
        }
    };
    meaning.to_owned()
}

/// How bad a finding is, in words.
pub(super) const fn severity(at_most: GradeLetter) -> &'static str {
    match at_most {
        GradeLetter::F => "harm is done",
        GradeLetter::D => "a request stays stuck",
        GradeLetter::C => "mistakes stay hidden",
        GradeLetter::B => "a promise is broken",
        GradeLetter::AMinus | GradeLetter::A | GradeLetter::APlus => "clients have it harder",
    }
}

/// What is known of effects.
pub(super) fn oracle_text(oracle: &OracleDocument) -> String {
    let level = oracle.level.name();
    match (oracle.level, oracle.text.as_str()) {
        (OracleLevel::Answers, _) => format!("effects not counted ({level}: answers alone)"),
        (OracleLevel::Names, _) => format!("effects not counted ({level}: answers name them)"),
        (OracleLevel::Counted | OracleLevel::Received, "") => format!("effects counted ({level})"),
        (OracleLevel::Counted | OracleLevel::Received, text) => {
            format!("effects counted ({level}) by {text}")
        }
    }
}

/// What a passed probe is worth: its trials, how far it went, and how close duplicates came.
pub(super) fn worth(probe: &ProbeDocument, trials: u32) -> String {
    let known = [probe.reach.clone(), probe.races.as_ref().map(races_text)];
    let parts: Vec<_> =
        [unseen_text(trials)].into_iter().chain(known.into_iter().flatten()).collect();
    parts.join("; ")
}

/// How close duplicates came.
pub(super) fn races_text(races: &RacesDocument) -> String {
    format!(
        "the last bytes of duplicates left within 200 µs of each other in {} of {} races (in half within {}, in 95 of \
         100 within {})",
        races.at_once,
        races.trials,
        micros_text(races.median_micros),
        micros_text(races.p95_micros)
    )
}

/// `#2 retry: 201 after 3.1 ms`.
pub(super) fn exchange_text(exchange: &ExchangeDocument) -> String {
    let took = exchange.ended_micros.saturating_sub(exchange.began_micros);
    let end = exchange.outcome();
    let (number, label) = (exchange.number, &exchange.label);
    let cut = exchange.cut_text().map_or_else(String::new, |cut| format!(", {cut}"));
    format!("#{number} {label}: {end} after {}{cut}", micros_text(took))
}

pub(super) fn micros_text(micros: u64) -> String {
    time_text(Duration::from_micros(micros))
}

/// The probes that came to no conclusion, and why: those that were run, or those that were not.
pub(super) fn inconclusive(report: &ReportDocument, run: bool) -> Vec<(&ProbeDocument, &str)> {
    let open = report.probes.iter().filter_map(|probe| match &probe.verdict {
        VerdictDocument::Inconclusive { reason, was_run } if *was_run == run => {
            Some((probe, reason.as_str()))
        }
        VerdictDocument::Inconclusive { .. }
        | VerdictDocument::Pass { .. }
        | VerdictDocument::Fail { .. } => None,
    });
    open.collect()
}

/// The probes that passed, and in how many trials.
pub(super) fn passed(report: &ReportDocument) -> Vec<(&ProbeDocument, u32)> {
    let passed = report.probes.iter().filter_map(|probe| match &probe.verdict {
        VerdictDocument::Pass { trials } => Some((probe, *trials)),
        VerdictDocument::Fail { .. } | VerdictDocument::Inconclusive { .. } => None,
    });
    passed.collect()
}

/// How a control came out, in a word.
pub(super) const fn outcome_text(outcome: ControlOutcome) -> &'static str {
    match outcome {
        ControlOutcome::Holds => "holds",
        ControlOutcome::Refuted => "refuted",
        ControlOutcome::Skipped => "skipped",
    }
}
