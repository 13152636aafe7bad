//! Terminal, JUnit, SARIF and badge.

use hapax_examine::{
    ControlVerdict, ExaminationRecord, PROBES, ProbeVerdict, ReportDocument, TerminalColour,
    render_badge, render_html, render_junit, render_sarif, render_terminal,
};
use serde_json::Value;

use super::{WHEN, api, probe, record, report};
use crate::grade::flawless;

fn refuted() -> ReportDocument {
    let mut record = ExaminationRecord { probes: Vec::new(), ..flawless() };
    record.controls[0].verdict = ControlVerdict::Refuted("one effect for two keys".to_owned());
    ReportDocument::of(&record, &api(), WHEN)
}

#[test]
fn the_terminal_begins_with_the_letter_and_what_was_found() {
    let text = render_terminal(&report(), TerminalColour::Plain);
    let places: Vec<_> = [
        "Grade F  4 of 32 probes conclusive",
        "FOUND",
        "S0  V02 race",
        "one key had 2 effects: 3 requests were answered with 201",
        "#1 duplicate 1: 201 (1) after 22.0 ms",
        "What to do: claim the key in one atomic step",
        "--replay 7 --only V02",
        "S1  V23 kill-while-running",
        "INCONCLUSIVE",
        "duplicates never overlapped",
        "NOT RUN",
        "it needs `--also`",
        "PASSED",
        "0 of 30 trials: < 9.5 % at 95 %",
    ]
    .into_iter()
    .map(|part| text.find(part).ok_or(part))
    .collect();
    assert!(places.iter().all(Result::is_ok), "{places:?} in\n{text}");
    assert!(places.is_sorted(), "{places:?} in\n{text}");
}

#[test]
fn the_terminal_fits_a_hundred_columns_whatever_was_said() {
    let mut record = record();
    let long = format!("{} {}", "word ".repeat(60), "endless".repeat(60));
    record.probes.push(probe("V05", ProbeVerdict::inconclusive(long), Vec::new()));
    let mut far = api();
    far.path = format!("/{}", "deep/".repeat(80));
    for report in [ReportDocument::of(&record, &far, WHEN), refuted()] {
        let text = render_terminal(&report, TerminalColour::Plain);
        // Commands stay in one line, to be copied.
        let is_text = |line: &&str| !line.trim_start().starts_with("To send the same again: ");
        for line in text.lines().filter(is_text) {
            assert!(line.chars().count() <= 100, "{line}");
        }
        assert!(!text.contains('\u{1b}'));
    }
}

#[test]
fn only_our_own_colours_reach_a_terminal() {
    let mut report = report();
    report.probes[2].name = "\u{1b}]0;owned\u{7}".to_owned();
    let plain = render_terminal(&report, TerminalColour::Plain);
    assert!(!plain.contains(['\u{1b}', '\u{7}']), "{plain}");
    let coloured = render_terminal(&report, TerminalColour::Ansi);
    assert!(coloured.contains("\u{1b}[1;31mGrade F\u{1b}[0m"), "{coloured}");
    assert!(!coloured.contains("\u{1b}]"), "{coloured}");
}

#[test]
fn what_is_not_graded_says_why() {
    let report = refuted();
    for form in [
        render_terminal(&report, TerminalColour::Plain),
        render_html(&report),
        render_junit(&report),
        render_sarif(&report, "openapi.yaml").unwrap(),
    ] {
        assert!(form.contains("one effect for two keys"), "{form}");
    }
    assert!(render_badge(&report).contains(">not graded<"));
}

#[test]
fn nothing_is_called_safe() {
    let good = ReportDocument::of(&flawless(), &api(), WHEN);
    for report in [report(), good, refuted()] {
        for form in [
            report.to_json().unwrap(),
            render_terminal(&report, TerminalColour::Plain),
            render_html(&report),
            render_junit(&report),
            render_badge(&report),
        ] {
            // A page forbids styles from elsewhere in such words.
            let words = form.to_lowercase().replace("'unsafe-inline'", "");
            assert!(!words.contains("safe"), "{form}");
        }
    }
}

#[test]
fn junit_has_a_case_for_each_probe() {
    let xml = render_junit(&report());
    assert!(xml.contains("tests=\"6\" failures=\"3\" errors=\"0\" skipped=\"2\""), "{xml}");
    assert_eq!(xml.matches("<testcase ").count(), 6);
    assert!(
        xml.contains("name=\"V02 race\" time=\"0.120000\"><failure message=\"one key"),
        "{xml}"
    );
    assert!(xml.contains("<skipped message=\"it needs `--also`\"/>"), "{xml}");
    assert_eq!(open_elements(&xml), Vec::<String>::new());
}

#[test]
fn junit_does_not_pass_where_nothing_was_graded() {
    let xml = render_junit(&refuted());
    assert!(xml.contains("tests=\"1\" failures=\"0\" errors=\"1\""), "{xml}");
    assert!(xml.contains("<error message=\""), "{xml}");
}

/// The elements that are begun and not ended: none in what can be read.
pub(super) fn open_elements(xml: &str) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    for part in xml.split('<').skip(1) {
        let (tag, text) = part.split_once('>').unwrap();
        assert!(!text.contains('>'), "{part}");
        let name = tag.split([' ', '/', '\n']).find(|name| !name.is_empty()).unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_deref(), Some(name));
        } else if !tag.ends_with(['/', '?']) && !["!doctype", "meta", "br"].contains(&name) {
            open.push(name.to_owned());
        }
    }
    open
}

#[test]
fn sarif_has_a_rule_for_each_probe_and_a_result_for_each_defect() {
    let log: Value =
        serde_json::from_str(&render_sarif(&report(), "api/openapi.yaml").unwrap()).unwrap();
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert_eq!(rules.len(), PROBES.len());
    let results = run["results"].as_array().unwrap();
    let told: Vec<_> = results
        .iter()
        .map(|result| (result["ruleId"].as_str().unwrap(), result["level"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("V02", "error"), ("V23", "error"), ("V12", "note")]);
    for result in results {
        let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
        assert_eq!(rules[index]["id"], result["ruleId"]);
        let place = &result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
        assert_eq!(place, "api/openapi.yaml");
    }
    let print = results[0]["partialFingerprints"]["hapaxFinding/v1"].as_str().unwrap();
    assert_eq!(print, "V02/S0/one key had # effects: # requests were answered with #");
}

#[test]
fn a_badge_has_letter_and_coverage() {
    let badge = render_badge(&report());
    assert!(badge.contains(">F 4/32<"), "{badge}");
    assert!(badge.contains("retries: F, 4 of 32 probes conclusive"), "{badge}");
    assert_eq!(open_elements(&badge), Vec::<String>::new());
    let best = render_badge(&ReportDocument::of(&flawless(), &api(), WHEN));
    assert!(best.contains(">A+ 32/32<") && best.contains("#1a7f4b"), "{best}");
}

#[test]
fn the_other_forms_are_made_from_a_report_that_was_read_back() {
    let report = report();
    let read = ReportDocument::read(&report.to_json().unwrap()).unwrap();
    assert_eq!(render_html(&read), render_html(&report));
    assert_eq!(render_junit(&read), render_junit(&report));
}
