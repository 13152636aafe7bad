//! `hapax doctor` on real stores, well and not.

mod gateway_file;
mod postgres;
mod restored;
mod sqlite;
mod versions;

use std::process::Output;

use serde_json::Value;

use crate::{hapax, text};

/// What the doctor said, and the code it ended with.
struct Visit {
    code: i32,
    report: Value,
}

impl Visit {
    fn of(args: &[&str]) -> Self {
        let output = hapax(&[&["doctor", "--json"], args].concat());
        let report = serde_json::from_slice(&output.stdout);
        assert!(report.is_ok(), "{}", text(&output.stderr));
        Self { code: output.status.code().unwrap(), report: report.unwrap() }
    }

    fn finding(&self, check: &str) -> &Value {
        let findings = self.report["findings"].as_array().unwrap();
        let found = findings.iter().find(|finding| finding["check"] == check);
        assert!(found.is_some(), "nothing about {check} in {:#}", self.report);
        found.unwrap()
    }

    fn level(&self, check: &str) -> &str {
        self.finding(check)["level"].as_str().unwrap()
    }

    fn found(&self, check: &str) -> &str {
        self.finding(check)["found"].as_str().unwrap()
    }

    /// Everything above a note, without these.
    fn troubles(&self, without: &[&str]) -> Vec<&Value> {
        let findings = self.report["findings"].as_array().unwrap().iter();
        let troubles = findings
            .filter(|finding| finding["level"] == "warning" || finding["level"] == "danger");
        troubles.filter(|finding| !without.contains(&finding["check"].as_str().unwrap())).collect()
    }

    /// Whoever is told that something is not well is told what it risks and what to type.
    fn check_words(&self) {
        for finding in self.report["findings"].as_array().unwrap() {
            let is_well = finding["level"] == "ok";
            for member in ["risk", "do"] {
                let words = finding[member].as_str().unwrap_or_default();
                assert_eq!(words.is_empty(), is_well, "{finding:#}");
            }
        }
    }
}

fn lines(args: &[&str]) -> Output {
    hapax(&[&["doctor"], args].concat())
}

#[test]
fn help_says_what_is_changed_and_what_the_codes_mean() {
    let help = text(&lines(&["--help"]).stdout);
    for part in ["Examples:", "Exit status:", "Nothing is changed", "--client-retries-for"] {
        assert!(help.contains(part), "no {part:?} in:\n{help}");
    }
}

#[test]
fn an_address_that_means_nothing_is_told_with_a_code_of_its_own() {
    let output = lines(&["--store", "mysql://somewhere"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(text(&output.stderr).contains("write sqlite:PATH"), "{}", text(&output.stderr));
    let memory = Visit::of(&["--store", "memory:"]);
    assert_eq!((memory.code, memory.level("store")), (2, "danger"));
}
