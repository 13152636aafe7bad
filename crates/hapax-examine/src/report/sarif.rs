//! The report as SARIF 2.1.0, which code hosts show beside the code.

use serde_json::{Value, json};

use super::document::{DefectDocument, GradeDocument, ProbeDocument, ReportDocument, ReportFault};
use crate::{GradeLetter, PROBES, baseline::fingerprint};

const SCHEMA: &str =
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// A result for each defect, at `file`: the one in the repository that describes the API, or says how it is examined.
///
/// Code hosts show nothing that is in no file.
pub fn render_sarif(report: &ReportDocument, file: &str) -> Result<String, ReportFault> {
    let rules: Vec<_> =
        PROBES.iter().map(|probe| rule(probe.id, probe.name, probe.question)).collect();
    let results: Vec<_> = report
        .findings()
        .into_iter()
        .map(|(probe, defect)| result(report, file, probe, defect))
        .collect();
    let notifications: Vec<_> = match &report.grade {
        GradeDocument::NotGraded { why } => {
            vec![json!({ "level": "error", "message": { "text": format!("not graded: {why}") } })]
        }
        GradeDocument::Graded { .. } => Vec::new(),
    };
    let log = json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": {
                "name": "hapax verify",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "rules": rules,
            } },
            "automationDetails": { "id": format!("hapax-verify/{}", report.target.describe()) },
            "invocations": [{
                "executionSuccessful": notifications.is_empty(),
                "toolExecutionNotifications": notifications,
            }],
            "results": results,
        }],
    });
    Ok(serde_json::to_string_pretty(&log)? + "\n")
}

fn rule(id: &str, name: &str, question: &str) -> Value {
    json!({
        "id": id,
        "name": name,
        "shortDescription": { "text": question },
        "properties": { "tags": ["reliability", "idempotency"] },
    })
}

fn result(
    report: &ReportDocument,
    file: &str,
    probe: &ProbeDocument,
    defect: &DefectDocument,
) -> Value {
    let level = match defect.at_most {
        GradeLetter::F | GradeLetter::D => "error",
        GradeLetter::C | GradeLetter::B => "warning",
        GradeLetter::AMinus | GradeLetter::A | GradeLetter::APlus => "note",
    };
    let text = format!("{}. What to do: {}.", defect.sentence, defect.advice);
    let index = PROBES.iter().position(|known| known.id == probe.id);
    let mut result = json!({
        "ruleId": probe.id,
        "level": level,
        "message": { "text": text },
        "locations": [{
            "physicalLocation": {
                "artifactLocation": { "uri": file },
                "region": { "startLine": 1 },
            },
            "logicalLocations": [{
                "fullyQualifiedName": report.target.describe(),
                "kind": "resource",
            }],
        }],
        "partialFingerprints": { "hapaxFinding/v1": fingerprint(&probe.id, defect) },
        "properties": { "class": defect.class, "replay": probe.replay },
    });
    if let (Some(index), Some(fields)) = (index, result.as_object_mut()) {
        fields.insert("ruleIndex".to_owned(), index.into());
    }
    result
}
