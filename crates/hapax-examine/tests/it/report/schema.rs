//! The published schema says what stands in a report: all of it, and nothing else.

use std::collections::BTreeSet;

use hapax_examine::{
    ControlVerdict, ExaminationRecord, ProbeVerdict, REPORT_FORMAT, ReportDocument,
};
use serde_json::Value;

use super::{WHEN, api, record, report};
use crate::grade::flawless;

const SCHEMA: &str = include_str!("../../../schema/report.schema.json");

/// Checks documents, and keeps in mind which properties of the schema were seen.
struct Validator {
    schema: Value,
    seen: BTreeSet<String>,
}

impl Validator {
    fn new() -> Self {
        Self { schema: serde_json::from_str(SCHEMA).unwrap(), seen: BTreeSet::new() }
    }

    /// What is wrong with this document.
    fn faults(&mut self, document: &Value) -> Vec<String> {
        let root = self.schema.clone();
        let mut faults = Vec::new();
        self.check(&root, document, "#", &mut faults);
        faults
    }

    fn check(&mut self, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        if let Some(reference) = schema["$ref"].as_str() {
            let pointer = reference.trim_start_matches('#');
            let target = self.schema.pointer(pointer).unwrap().clone();
            return self.check(&target, value, reference, faults);
        }
        if let Some(branches) = schema["oneOf"].as_array() {
            return self.check_branches(branches, value, at, faults);
        }
        if let Some(constant) = schema.get("const").filter(|constant| *constant != value) {
            faults.push(format!("{at}: {value} is not {constant}"));
        }
        if let Some(names) = schema["enum"].as_array().filter(|names| !names.contains(value)) {
            faults.push(format!("{at}: {value} is none of {names:?}"));
        }
        let has_type = match schema["type"].as_str() {
            Some("object") => value.is_object(),
            Some("array") => value.is_array(),
            Some("string") => value.is_string(),
            Some("integer") => value.as_u64().is_some(),
            Some("boolean") => value.is_boolean(),
            Some(_) => false,
            None => true,
        };
        if !has_type {
            faults.push(format!("{at}: {value} is no {}", schema["type"]));
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            self.check(&schema["items"], item, &format!("{at}[{index}]"), faults);
        }
        let Some(fields) = value.as_object() else { return };
        for name in schema["required"].as_array().into_iter().flatten() {
            if !fields.contains_key(name.as_str().unwrap()) {
                faults.push(format!("{at}: {name} is missing"));
            }
        }
        for (name, field) in fields {
            let place = format!("{at}/{name}");
            match schema["properties"].get(name) {
                Some(property) => {
                    self.seen.insert(place.clone());
                    self.check(property, field, &place, faults);
                }
                None => faults.push(format!("{place} is not in the schema")),
            }
        }
    }

    /// Exactly one must fit; where none does, the one that says most of itself is told.
    fn check_branches(
        &mut self,
        branches: &[Value],
        value: &Value,
        at: &str,
        faults: &mut Vec<String>,
    ) {
        let mut fitting = 0;
        let mut found = Vec::new();
        for (index, branch) in branches.iter().enumerate() {
            let mut wrong = Vec::new();
            let before = self.seen.clone();
            self.check(branch, value, &format!("{at}({index})"), &mut wrong);
            if wrong.is_empty() {
                fitting += 1;
            } else {
                self.seen = before;
                found.push(wrong);
            }
        }
        if fitting != 1 {
            faults.push(format!("{at}: {fitting} of {} fit: {found:?}", branches.len()));
        }
    }

    /// The properties of the schema that no document had.
    fn unseen(&self) -> Vec<String> {
        let mut all = Vec::new();
        properties(&self.schema, "#", &mut all);
        for (name, definition) in self.schema["$defs"].as_object().unwrap() {
            properties(definition, &format!("#/$defs/{name}"), &mut all);
        }
        all.retain(|place| !self.seen.contains(place));
        all
    }
}

fn properties(schema: &Value, at: &str, all: &mut Vec<String>) {
    for name in schema["properties"].as_object().into_iter().flat_map(|fields| fields.keys()) {
        all.push(format!("{at}/{name}"));
    }
    for (index, branch) in schema["oneOf"].as_array().into_iter().flatten().enumerate() {
        properties(branch, &format!("{at}({index})"), all);
    }
}

fn json(report: &ReportDocument) -> Value {
    serde_json::from_str(&report.to_json().unwrap()).unwrap()
}

#[test]
fn the_schema_says_all_that_stands_in_a_report_and_nothing_else() {
    let mut validator = Validator::new();
    let mut refuted = flawless();
    refuted.controls[0].verdict = ControlVerdict::Refuted("nothing is known".to_owned());
    let mut with_races = record();
    with_races.probes[2].spreads = with_races.probes[0].spreads.clone();
    with_races.probes[2].reach = with_races.probes[0].reach.clone();
    with_races.probes[2].verdict = ProbeVerdict::inconclusive("they came late");
    for record in [refuted, with_races, ExaminationRecord { probes: Vec::new(), ..flawless() }] {
        let report = ReportDocument::of(&record, &api(), WHEN);
        assert_eq!(validator.faults(&json(&report)), Vec::<String>::new());
    }
    assert_eq!(validator.unseen(), Vec::<String>::new());
    assert_eq!(validator.schema["title"], REPORT_FORMAT);
    let version = REPORT_FORMAT.split('/').next_back().unwrap();
    assert_eq!(validator.schema["$id"], format!("urn:hapax:verify-report:{version}"));
}

#[test]
fn the_schema_refuses_what_is_not_in_it() {
    let whole = json(&report());
    let changes: [(&str, Value); 5] = [
        ("/format", "hapax-verify/2".into()),
        ("/grade/letter", "E".into()),
        ("/probes/0/verdict", "maybe".into()),
        ("/probes/1/exchanges/0/end/how", "lost".into()),
        ("/probes/1/defects/0/shown_by", "1, 2".into()),
    ];
    for (place, value) in changes {
        let mut changed = whole.clone();
        *changed.pointer_mut(place).unwrap() = value;
        assert_ne!(Validator::new().faults(&changed), Vec::<String>::new(), "{place}");
    }
    let mut more = whole;
    more["when_exactly"] = "now".into();
    assert_eq!(Validator::new().faults(&more), ["#/when_exactly is not in the schema"]);
}
