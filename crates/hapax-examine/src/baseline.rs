//! What changed since another report: a team that has findings wants to know of new ones.

use std::collections::BTreeMap;

use crate::{
    ExaminationExit, Grade, Standing,
    report::{DefectDocument, ReportDocument},
};

/// The findings of a report beside those of an earlier one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BaselineComparison {
    /// What was not found before.
    pub new: Vec<ComparedFinding>,
    /// What was found before and now, in the words of now.
    pub unchanged: Vec<ComparedFinding>,
    /// What was found before, and is not there now that its probe came to a conclusion.
    pub gone: Vec<ComparedFinding>,
    /// What was found before, and nobody can say now: its probe came to no conclusion, or was not run.
    pub unknown: Vec<ComparedFinding>,
    /// What a program that compares ends with: something new decides.
    pub exit: ExaminationExit,
}

/// A finding, without its evidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComparedFinding {
    /// `V01`.
    pub probe: String,
    /// `S0`.
    pub class: String,
    /// What happened.
    pub sentence: String,
}

impl BaselineComparison {
    /// Compares `now` with `before`.
    pub fn of(now: &ReportDocument, before: &ReportDocument) -> Self {
        let (found_now, found_before) = (findings(now), findings(before));
        let basis = now.basis();
        let is_settled = |finding: &ComparedFinding| {
            let same = basis.probes.iter().find(|probe| probe.id == finding.probe);
            same.is_some_and(|probe| match probe.standing {
                Standing::Held { .. } | Standing::Broken { .. } => true,
                Standing::Open | Standing::NotRun => false,
            })
        };
        let (mut new, mut unchanged) = (Vec::new(), Vec::new());
        for (key, finding) in &found_now {
            let list = if found_before.contains_key(key) { &mut unchanged } else { &mut new };
            list.push(finding.clone());
        }
        let missing = found_before.into_iter().filter(|(key, _)| !found_now.contains_key(key));
        let (gone, unknown): (Vec<_>, Vec<_>) =
            missing.map(|(_, finding)| finding).partition(is_settled);
        let exit = if !new.is_empty() {
            ExaminationExit::Findings
        } else if matches!(basis.grade(), Grade::Withheld { .. }) || !unknown.is_empty() {
            ExaminationExit::Inconclusive
        } else {
            ExaminationExit::Clean
        };
        Self { new, unchanged, gone, unknown, exit }
    }

    /// What changed, in lines for a terminal.
    pub fn text(&self) -> String {
        let lists = [
            ("New", &self.new),
            ("Gone", &self.gone),
            ("Unknown now", &self.unknown),
            ("As before", &self.unchanged),
        ];
        let mut text = String::new();
        for (title, findings) in lists {
            text.push_str(&format!("{title}: {}\n", findings.len()));
            for ComparedFinding { probe, class, sentence } in findings {
                let line = format!("{class} {probe}: {sentence}");
                text.push_str(&crate::report::wrapped(&line, "  ", crate::report::COLUMNS));
            }
        }
        text
    }
}

/// By what a finding is known again, although its numbers differ from run to run.
pub(crate) fn fingerprint(probe: &str, defect: &DefectDocument) -> String {
    format!("{probe}/{}/{}", defect.class, without_numbers(&defect.sentence))
}

fn findings(report: &ReportDocument) -> BTreeMap<String, ComparedFinding> {
    let findings = report.findings().into_iter().map(|(probe, defect)| {
        let finding = ComparedFinding {
            probe: probe.id.clone(),
            class: defect.class.clone(),
            sentence: defect.sentence.clone(),
        };
        (fingerprint(&probe.id, defect), finding)
    });
    findings.collect()
}

/// A sentence in which each list of words with digits is a `#`: counts, statuses, keys and times differ.
fn without_numbers(sentence: &str) -> String {
    let mut words: Vec<&str> = Vec::new();
    for word in sentence.split_whitespace() {
        let has_digit = word.contains(|c: char| c.is_ascii_digit());
        if !has_digit {
            words.push(word);
        } else if words.last() != Some(&"#") {
            words.push("#");
        }
    }
    words.join(" ")
}
