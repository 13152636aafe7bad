//! The report as one page that needs nothing else: for whoever has to mend what was found.

mod finding;

use self::finding::{EarlierFindings, finding_section, slug};
use super::{
    document::{GradeDocument, ProbeDocument, ReportDocument},
    summary::{
        coverage_text, inconclusive, letter_text, meaning, micros_text, oracle_text, outcome_text,
        passed, severity, worth,
    },
    text::{markup, prose},
};
use crate::GradeLetter;

const CSS: &str = include_str!("page.css");

/// A page with the grade, what to mend, each finding with its evidence, and what was not found out.
pub fn render_html(report: &ReportDocument) -> String {
    let title = markup(&format!("Retries of {}", report.target.describe()));
    let sections = [
        header(report),
        to_mend(report),
        findings(report),
        open(report),
        good(report),
        grading(report),
        method(report),
        words(report),
    ];
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{CSS}</style>\n</head>\n<body>\n{}</body>\n</html>\n",
        sections.concat()
    )
}

fn header(report: &ReportDocument) -> String {
    let letter = letter_text(&report.grade);
    let (class, unproven) = match &report.grade {
        GradeDocument::Graded { letter, effects_unproven, .. } => {
            (accent(*letter).to_owned(), if *effects_unproven { ", effects unproven" } else { "" })
        }
        GradeDocument::NotGraded { .. } => ("fair none".to_owned(), ""),
    };
    let key = markup(&report.target.key_header);
    let mut html = format!(
        "<header>\n<div class=\"letter {class}\">{letter}</div>\n<div>\n\
         <h1>What happens when somebody asks twice</h1>\n<p><code>{}</code></p>\n\
         <p class=\"soft\">{}{unproven}. Examined {}.</p>\n</div>\n</header>\n",
        markup(&report.target.describe()),
        markup(&coverage_text(report)),
        markup(&report.when)
    );
    html.push_str(&format!(
        "<p class=\"meaning\">{}{}</p>\n\
         <p>Whoever does not hear an answer asks again, and sends the same <strong>key</strong> in <code>{key}</code>. \
         The server must then have one <strong>effect</strong> (one payment, one order), and say again what it said at \
         first. This page says what was seen of that from outside, with {}.</p>\n",
        prose(&meaning(report)),
        worst_seen(report),
        prose(&oracle_text(&report.oracle))
    ));
    html
}

/// Why it is this letter, and what a better one takes.
fn grading(report: &ReportDocument) -> String {
    match &report.grade {
        GradeDocument::Graded { reasons, wanting, .. }
            if !(reasons.is_empty() && wanting.is_empty()) =>
        {
            let reasons = list(reasons.iter().chain(wanting));
            format!("<h2>Why this grade, and what a better one takes</h2>\n{reasons}")
        }
        GradeDocument::Graded { .. } | GradeDocument::NotGraded { .. } => String::new(),
    }
}

/// The worst of what happened, in its own words.
fn worst_seen(report: &ReportDocument) -> String {
    report.findings().first().map_or_else(String::new, |(_, defect)| {
        format!(" <strong>What was seen:</strong> {}.", prose(&defect.sentence))
    })
}

/// What to do, the worst first, each once.
fn to_mend(report: &ReportDocument) -> String {
    let mut advice: Vec<&str> = Vec::new();
    let mut items = String::new();
    for (number, (probe, defect)) in (1..).zip(report.findings()) {
        if advice.contains(&defect.advice.as_str()) {
            continue;
        }
        advice.push(&defect.advice);
        items.push_str(&format!(
            "<li>{} <small>(<a href=\"#{}\">{}</a>: {})</small></li>\n",
            prose(&capital(&defect.advice)),
            slug(number),
            markup(&probe.id),
            severity(defect.at_most)
        ));
    }
    if items.is_empty() { items } else { format!("<h2>What to mend</h2>\n<ol>\n{items}</ol>\n") }
}

fn findings(report: &ReportDocument) -> String {
    let findings = report.findings();
    if findings.is_empty() {
        return String::new();
    }
    let mut sections = String::new();
    for (number, (probe, defect)) in (1..).zip(&findings) {
        let earlier = (1..number).zip(&findings).find(|(_, (other, shown))| {
            (&other.id, &shown.shown_by) == (&probe.id, &defect.shown_by)
        });
        let alike =
            (1..number).zip(&findings).find(|(_, (_, other))| other.advice == defect.advice);
        let before = EarlierFindings {
            same_exchanges: earlier.map(|(number, _)| number),
            same_advice: alike.map(|(number, _)| number),
        };
        sections.push_str(&finding_section(number, before, probe, defect));
    }
    format!(
        "<h2>What was found</h2>\n\
         <p class=\"soft\">In the pictures, time goes from left to right. Each line is a request: blue until its last byte \
         has left (duplicates are held back on purpose, so that they arrive together), grey while the server works on it, \
         a dot where its answer begins (red where the server failed or hung up), a cross where the connection was broken \
         off on purpose. The red band is when the server had two of them at once. On the right stands what was answered \
         and, in brackets, what the answer calls the effect. Numbered lines show what was done in between.</p>\n\
         {sections}"
    )
}

fn open(report: &ReportDocument) -> String {
    let mut html = String::new();
    let (open, not_run) = (inconclusive(report, true), inconclusive(report, false));
    if !open.is_empty() {
        html.push_str("<h2>What could not be told</h2>\n");
        html.push_str(&table(open.into_iter().map(|(probe, reason)| (probe, reason.to_owned()))));
    }
    if !not_run.is_empty() {
        html.push_str("<h2>What was not tried</h2>\n");
        html.push_str(&table(
            not_run.into_iter().map(|(probe, reason)| (probe, reason.to_owned())),
        ));
    }
    html
}

fn good(report: &ReportDocument) -> String {
    let passed = passed(report);
    if passed.is_empty() {
        return String::new();
    }
    let rows = passed.into_iter().map(|(probe, trials)| (probe, worth(probe, trials)));
    format!(
        "<h2>What was as it should be</h2>\n\
         <p class=\"soft\">What was not seen in some trials may happen in others: the number says how often at \
         most, with 95 % confidence.</p>\n{}",
        table(rows)
    )
}

/// Probes with their questions, and what there is to say of each.
fn table<'a>(probes: impl Iterator<Item = (&'a ProbeDocument, String)>) -> String {
    let rows: String = probes
        .map(|(probe, said)| {
            format!(
                "<tr><th scope=\"row\">{}</th><td>{}<br><small>{}</small></td></tr>\n",
                markup(&probe.id),
                markup(&probe.question),
                prose(&said)
            )
        })
        .collect();
    format!("<div class=\"wide\"><table>\n{rows}</table></div>\n")
}

fn method(report: &ReportDocument) -> String {
    let addresses = report.target.addresses.join(", ");
    let facts = [
        ("Addresses", addresses),
        ("Knowledge of effects", oracle_text(&report.oracle)),
        ("Operations begun", report.operations.to_string()),
        ("Time", micros_text(report.took_micros)),
        ("Seed", report.seed.clone()),
        ("Program", report.program.clone()),
    ];
    let facts = facts.iter().map(|(name, text)| {
        format!("<tr><th scope=\"row\">{name}</th><td>{}</td></tr>\n", markup(text))
    });
    let controls = report.controls.iter().map(|control| {
        format!(
            "<tr><th scope=\"row\">{} {}</th><td>{}<br><small>{}</small></td></tr>\n",
            markup(&control.id),
            outcome_text(control.verdict),
            markup(&control.question),
            prose(&control.text)
        )
    });
    let rows: String = facts.chain(controls).collect();
    format!("<h2>How it was examined</h2>\n<div class=\"wide\"><table>\n{rows}</table></div>\n")
}

/// What the words of this page mean.
fn words(report: &ReportDocument) -> String {
    let key = markup(&report.target.key_header);
    format!(
        "<h2>Words</h2>\n<ul>\n\
         <li><strong>Key</strong>: what a client sends in <code>{key}</code>, a new one for each thing that it wants \
         done, and the same again when it asks for that thing again.</li>\n\
         <li><strong>Effect</strong>: what is there after a request that was not there before: a payment, an order.</li>\n\
         <li><strong>S0</strong>: an effect that happened twice or was lost, or an answer that somebody else heard (at \
         most F). <strong>S1</strong>: a key that stays stuck (at most D). <strong>S2</strong>: a broken contract (at \
         most C where it hides mistakes of clients, else B). <strong>S3</strong>: what makes the work of clients \
         harder (at most A-).</li>\n\
         <li><strong>Conclusive</strong>: a probe that saw whether what it asks about holds. For an A most must be, and \
         somebody must count effects.</li>\n</ul>\n"
    )
}

fn list<'a>(lines: impl Iterator<Item = &'a String>) -> String {
    let items: String = lines.map(|line| format!("<li>{}</li>\n", prose(line))).collect();
    if items.is_empty() { items } else { format!("<ul>\n{items}</ul>\n") }
}

pub(super) const fn accent(letter: GradeLetter) -> &'static str {
    match letter {
        GradeLetter::F | GradeLetter::D => "bad",
        GradeLetter::C | GradeLetter::B => "fair",
        GradeLetter::AMinus | GradeLetter::A | GradeLetter::APlus => "good",
    }
}

/// A sentence that begins with a capital letter.
fn capital(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
