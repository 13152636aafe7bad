//! What was found: sentences for people, JSON for programs.

use std::io::{self, Write};

use hapax_messaging::audit::{Kind, Report};
use serde_json::{Map, Value, json};

use super::error::AuditError;
use crate::table::harmless;

pub(super) fn report(report: &Report, as_json: bool) -> Result<(), AuditError> {
    let mut out = io::stdout().lock();
    if as_json {
        serde_json::to_writer_pretty(&mut out, &document(report)).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(());
    }
    let Report { emitted, delivered, repeats, waiting, parked, strangers, effects, .. } = report;
    writeln!(out, "{emitted} events emitted, over {} keys", report.keys)?;
    writeln!(out, "{delivered} arrived, {repeats} times again; {waiting} wait, {parked} parked")?;
    if *strangers > 0 {
        writeln!(out, "{strangers} arrived that the log does not know")?;
    }
    writeln!(out, "{effects} acted on, {} decided to have no effect", report.declined)?;
    if report.is_clean() {
        writeln!(out, "clean: nothing is lost, doubled or swapped")?;
        return Ok(());
    }
    for (kind, count) in &report.counts {
        writeln!(out, "\n{count} {}", in_words(*kind))?;
        let told = report.findings.iter().filter(|finding| finding.kind == *kind);
        for finding in told {
            writeln!(out, "  {}", harmless(&finding.to_string()))?;
        }
    }
    Ok(())
}

fn document(report: &Report) -> Value {
    let counts: Map<String, Value> = Kind::ALL
        .iter()
        .map(|kind| (kind.as_str().to_owned(), report.count(*kind).into()))
        .collect();
    let findings = report.findings.iter().map(|finding| {
        json!({
            "kind": finding.kind.as_str(),
            "id": finding.id.to_string(),
            "position": finding.position,
            "topic": finding.topic,
            "key": finding.key,
            "times": finding.times,
        })
    });
    json!({
        "clean": report.is_clean(),
        "emitted": report.emitted,
        "keys": report.keys,
        "delivered": report.delivered,
        "repeats": report.repeats,
        "waiting": report.waiting,
        "parked": report.parked,
        "strangers": report.strangers,
        "effects": report.effects,
        "declined": report.declined,
        "counts": counts,
        "findings": findings.collect::<Vec<_>>(),
    })
}

fn in_words(kind: Kind) -> &'static str {
    match kind {
        Kind::Lost => "lost: committed, and never arrived",
        Kind::Swapped => "swapped: arrived after a later one of the same key",
        Kind::Repeated => "repeated: arrived more than once",
        Kind::Misplaced => "misplaced: arrived under another topic or key",
        Kind::Unknown => "unknown: arrived, and never committed",
        Kind::Undelivered => "not delivered: they wait, or are parked",
        Kind::EffectMissing => "without effect",
        Kind::EffectDoubled => "with more than one effect",
    }
}
