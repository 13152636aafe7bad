//! The findings: lines for people, JSON for programs.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::diagnosis::{Diagnosis, Severity};
use crate::table::{columns, harmless};

/// How findings are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FindingsForm {
    /// As lines; what is well only if it is asked for.
    Lines { with_what_is_well: bool },
    /// As one document.
    Json,
}

pub(super) fn findings(
    out: &mut impl Write,
    found: &[Diagnosis],
    form: FindingsForm,
) -> io::Result<()> {
    match form {
        FindingsForm::Json => {
            serde_json::to_writer_pretty(&mut *out, &document(found)).map_err(io::Error::from)?;
            writeln!(out)
        }
        FindingsForm::Lines { with_what_is_well } => lines(out, found, with_what_is_well),
    }
}

fn lines(out: &mut impl Write, found: &[Diagnosis], with_what_is_well: bool) -> io::Result<()> {
    let shown = found.iter().filter(|found| with_what_is_well || found.concern.is_some());
    let row =
        |level: &str, check: &str, text: &str| [level.to_owned(), check.to_owned(), harmless(text)];
    let mut rows = Vec::new();
    for diagnosis in shown {
        rows.push(row(diagnosis.level(), diagnosis.check, &diagnosis.found));
        if let Some(concern) = &diagnosis.concern {
            rows.push(row("", "  risk", &concern.risk));
            rows.push(row("", "  do", &concern.advice));
        }
    }
    columns(out, &rows)?;
    let well = count(found, None);
    let others =
        Severity::ALL.map(|severity| format!("{severity} {}", count(found, Some(severity))));
    writeln!(out, "ok {well}, {}", others.join(", "))?;
    out.flush()
}

fn document(found: &[Diagnosis]) -> Value {
    let mut counts = Map::from_iter([("ok".to_owned(), count(found, None).into())]);
    for severity in Severity::ALL {
        counts.insert(severity.as_str().to_owned(), count(found, Some(severity)).into());
    }
    let findings = found.iter().map(|diagnosis| {
        let Diagnosis { check, found, concern } = diagnosis;
        let mut finding = json!({ "check": check, "level": diagnosis.level(), "found": found });
        if let Some(concern) = concern {
            finding["risk"] = concern.risk.as_str().into();
            finding["do"] = concern.advice.as_str().into();
        }
        finding
    });
    let worst = found.iter().filter_map(Diagnosis::severity).max();
    json!({
        "worst": worst.map_or("ok", Severity::as_str),
        "counts": counts,
        "findings": findings.collect::<Vec<_>>(),
    })
}

fn count(found: &[Diagnosis], severity: Option<Severity>) -> usize {
    found.iter().filter(|diagnosis| diagnosis.severity() == severity).count()
}
