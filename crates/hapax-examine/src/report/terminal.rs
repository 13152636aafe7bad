//! The report as text for a terminal.

use super::{
    document::{ControlOutcome, DefectDocument, GradeDocument, ProbeDocument, ReportDocument},
    summary::{
        coverage_text, exchange_text, inconclusive, letter_text, meaning, oracle_text, passed,
        races_text, worth,
    },
    text::{plain, wrapped},
};
use crate::GradeLetter;

/// How wide it is at most.
pub(crate) const COLUMNS: usize = 100;
/// Exchanges that are named under a finding.
const EXCHANGES_MAX: usize = 8;
/// How wide the column of the names of probes is.
const NAMES_WIDTH: usize = 30;

/// Whether a terminal is told colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalColour {
    /// It is.
    Ansi,
    /// There is nothing but text.
    Plain,
}

#[derive(Debug, Clone, Copy)]
enum Accent {
    Strong,
    Good,
    Fair,
    Bad,
    Soft,
}

/// What was found first, then what nobody knows, then what passed; in lines of at most 100 columns.
pub fn render_terminal(report: &ReportDocument, colour: TerminalColour) -> String {
    let sections = [
        opening(report, colour),
        findings(report, colour),
        open(report, colour),
        not_run(report, colour),
        good(report, colour),
    ];
    sections.into_iter().filter(|section| !section.is_empty()).collect::<Vec<_>>().join("\n")
}

fn opening(report: &ReportDocument, colour: TerminalColour) -> String {
    let letter = letter_text(&report.grade);
    let (title, accent) = match &report.grade {
        GradeDocument::Graded { letter: given, effects_unproven, .. } => {
            let unproven = if *effects_unproven { ", effects unproven" } else { "" };
            (format!("Grade {letter}{unproven}"), accent_of(*given))
        }
        GradeDocument::NotGraded { .. } => ("Not graded".to_owned(), Accent::Fair),
    };
    let mut text = format!("{}  {}\n", colour.paint(accent, &title), coverage_text(report));
    let seen = format!("{}, {}, seed {}", report.target.describe(), report.when, report.seed);
    text.push_str(&wrapped(&seen, "", COLUMNS));
    text.push_str(&wrapped(&oracle_text(&report.oracle), "", COLUMNS));
    text.push('\n');
    text.push_str(&wrapped(&meaning(report), "", COLUMNS));
    if let GradeDocument::Graded { reasons, wanting, .. } = &report.grade {
        for line in reasons.iter().chain(wanting) {
            text.push_str(&item(line));
        }
    }
    for control in report.controls.iter().filter(|one| one.verdict == ControlOutcome::Refuted) {
        text.push_str(&item(&format!("{} {} {}", control.id, control.question, control.text)));
    }
    text
}

fn findings(report: &ReportDocument, colour: TerminalColour) -> String {
    let findings = report.findings();
    if findings.is_empty() {
        return String::new();
    }
    let mut text = heading(colour, "FOUND");
    for (probe, defect) in findings {
        let title = format!("{}  {} {}", defect.class, probe.id, plain(&probe.name));
        text.push_str(&format!("  {}\n", colour.paint(accent_of(defect.at_most), &title)));
        text.push_str(&wrapped(&defect.sentence, "      ", COLUMNS));
        text.push_str(&evidence(probe, defect));
        let advice = format!("What to do: {}", defect.advice);
        text.push_str(&wrapped(&advice, "      ", COLUMNS));
        // In one line, so that it can be copied.
        let replay = format!("      To send the same again: {}\n", plain(&probe.replay));
        text.push_str(&colour.paint(Accent::Soft, &replay));
    }
    text
}

/// By which exchanges a defect is shown.
fn evidence(probe: &ProbeDocument, defect: &DefectDocument) -> String {
    let shown = probe.shown_by(defect);
    let mut text = String::new();
    for exchange in shown.iter().take(EXCHANGES_MAX) {
        text.push_str(&wrapped(&exchange_text(exchange), "        ", COLUMNS));
    }
    if shown.len() > EXCHANGES_MAX {
        text.push_str(&format!("        and {} more\n", shown.len() - EXCHANGES_MAX));
    }
    if let Some(races) = &probe.races {
        text.push_str(&wrapped(&races_text(races), "        ", COLUMNS));
    }
    text
}

fn open(report: &ReportDocument, colour: TerminalColour) -> String {
    let open = inconclusive(report, true);
    listed(colour, "INCONCLUSIVE", &open, |reason| (*reason).to_owned())
}

fn not_run(report: &ReportDocument, colour: TerminalColour) -> String {
    let not_run = inconclusive(report, false);
    listed(colour, "NOT RUN", &not_run, |reason| (*reason).to_owned())
}

fn good(report: &ReportDocument, colour: TerminalColour) -> String {
    let passed = passed(report);
    let texts: Vec<_> =
        passed.iter().map(|(probe, trials)| (*probe, worth(probe, *trials))).collect();
    listed(colour, "PASSED", &texts, Clone::clone)
}

/// Probes, each in a line or two with what there is to say of it.
fn listed<T>(
    colour: TerminalColour,
    title: &str,
    probes: &[(&ProbeDocument, T)],
    text_of: impl Fn(&T) -> String,
) -> String {
    if probes.is_empty() {
        return String::new();
    }
    let mut text = heading(colour, title);
    for (probe, said) in probes {
        let name = plain(&format!("{} {}", probe.id, probe.name));
        let indent = " ".repeat(NAMES_WIDTH);
        let said = wrapped(&text_of(said), &indent, COLUMNS);
        if name.chars().count() + 3 > NAMES_WIDTH {
            text.push_str(&format!("{}{said}", wrapped(&name, "  ", COLUMNS)));
            continue;
        }
        let rest = said.get(NAMES_WIDTH..).unwrap_or_default();
        let width = NAMES_WIDTH - 2;
        text.push_str(&format!("  {name:width$}{rest}"));
    }
    text
}

fn heading(colour: TerminalColour, title: &str) -> String {
    format!("{}\n", colour.paint(Accent::Strong, title))
}

/// A line of a list, whose further lines are further in.
fn item(line: &str) -> String {
    let text = wrapped(line, "    ", COLUMNS);
    format!("  - {}", text.get(4..).unwrap_or_default())
}

const fn accent_of(letter: GradeLetter) -> Accent {
    match letter {
        GradeLetter::F | GradeLetter::D => Accent::Bad,
        GradeLetter::C | GradeLetter::B => Accent::Fair,
        GradeLetter::AMinus | GradeLetter::A | GradeLetter::APlus => Accent::Good,
    }
}

impl TerminalColour {
    fn paint(self, accent: Accent, text: &str) -> String {
        let code = match accent {
            Accent::Strong => "1",
            Accent::Good => "1;32",
            Accent::Fair => "1;33",
            Accent::Bad => "1;31",
            Accent::Soft => "2",
        };
        match self {
            Self::Ansi => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Self::Plain => text.to_owned(),
        }
    }
}
