//! What is going to be done, said before it is, and the question whether it may.

use std::io::{self, BufRead, IsTerminal, Write};

use hapax_examine::{Examination, KeySyntax};

use super::{error::VerifyError, request::AffordedExamination};
use crate::table::{columns, harmless};

/// Shows what would be asked, how often, and by which probes.
pub(super) fn announce(out: &mut impl Write, afforded: &AffordedExamination) -> io::Result<()> {
    let AffordedExamination { examination, left_out, consent } = afforded;
    let (api, outline) = (&examination.api, examination.outline());
    let first = api.addresses.first().map_or_else(String::new, ToString::to_string);
    writeln!(out, "Examines {} {first}{}", api.method, harmless(&api.path))?;
    let mut rows: Vec<[String; 2]> = Vec::new();
    let mut row = |name: &str, text: String| rows.push([format!("  {name}"), harmless(&text)]);
    for also in api.addresses.iter().skip(1) {
        row("also at", also.to_string());
    }
    row("keys", keys(examination));
    let count = match &examination.oracle {
        Some(oracle) => format!("counted by {}", oracle.describe()),
        None => "nobody counts them: effects stay unproven (give --count)".to_owned(),
    };
    row("effects", format!("{count} ({})", examination.level().name()));
    let (operations, most) = (outline.operations_max(), examination.bounds.effects_max);
    let controls = outline.control_operations_max;
    row(
        "operations",
        format!("at most {operations} of {most}, {controls} of them to learn how it behaves"),
    );
    for by in &consent.by {
        row("allowed by", by.clone());
    }
    for (purpose, hook) in examination.hooks.given() {
        row("runs", format!("{hook}, which {purpose}"));
    }
    if examination.hooks.clean_up.is_none() {
        row("afterwards", "what was made stays there (give --clean-up)".to_owned());
    }
    row("seed", examination.seed.to_string());
    columns(out, &rows)?;
    writeln!(out, "Runs {}:", probes(outline.runs.len()))?;
    let runs = outline.runs.iter().map(|run| {
        let (probe, operations) = (run.probe, format!("{:>6}", run.operations_max));
        [format!("  {}", probe.id), probe.name.to_owned(), operations, probe.question.to_owned()]
    });
    columns(out, &runs.collect::<Vec<_>>())?;
    let too_dear = format!("{most} operations do not suffice for it (`--max-effects`)");
    let missing = outline.left_out.iter().map(|(probe, missing)| (*probe, *missing));
    let left = left_out.iter().map(|probe| (*probe, too_dear.as_str())).chain(missing);
    let left: Vec<_> = left
        .map(|(probe, why)| [format!("  {}", probe.id), probe.name.to_owned(), why.to_owned()])
        .collect();
    if !left.is_empty() {
        writeln!(out, "Leaves out {}:", probes(left.len()))?;
        columns(out, &left)?;
    }
    out.flush()
}

fn probes(count: usize) -> String {
    if count == 1 { "1 probe".to_owned() } else { format!("{count} probes") }
}

fn keys(examination: &Examination) -> String {
    let key = &examination.api.key;
    let place = if key.name.is_empty() { "in the body" } else { &key.name };
    let written = match key.syntax {
        Some(KeySyntax::Bare) => "as they are",
        Some(KeySyntax::Quoted) => "as quoted strings",
        None => "bare or quoted, which is found out",
    };
    let uuids = if key.uuids { ", UUIDs" } else { "" };
    format!("{place}, {written}{uuids}")
}

/// Asks on a terminal. Elsewhere nobody can be asked, and only this machine is examined without.
pub(super) fn may_go_on(is_at_home: bool) -> Result<(), VerifyError> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return if is_at_home { Ok(()) } else { Err(VerifyError::NobodyToAsk) };
    }
    let mut terminal = io::stderr().lock();
    write!(terminal, "Go on? [y/N] ")?;
    terminal.flush()?;
    let mut said = String::new();
    io::stdin().lock().read_line(&mut said)?;
    let is_yes = matches!(said.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if is_yes { Ok(()) } else { Err(VerifyError::Declined) }
}
