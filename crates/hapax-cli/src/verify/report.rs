//! What came of it: on standard output, and in files.

use std::{
    fs::{self, OpenOptions},
    io::{self, IsTerminal, Write},
    path::Path,
};

use hapax::{Timestamp, wall_clock};
use hapax_examine::{
    BaselineComparison, ExaminationExit, ReportDocument, ReportFault, TerminalColour, render_badge,
    render_html, render_junit, render_sarif, render_terminal,
};

use super::error::VerifyError;
use crate::args::VerifySettings;

/// What code hosts show findings at where no file says how the API is examined.
const NO_FILE: &str = "README.md";

/// The report that is compared with, if one is named.
pub(super) fn baseline(settings: &VerifySettings) -> Result<Option<ReportDocument>, VerifyError> {
    let Some(path) = &settings.compare else { return Ok(None) };
    let text = fs::read_to_string(path)
        .map_err(|source| VerifyError::Read { path: path.clone(), source })?;
    let read = ReportDocument::read(&text);
    read.map(Some).map_err(|source| VerifyError::Report { path: path.clone(), source })
}

/// Makes sure that the reports can be written: it would be late to find out at the end.
pub(super) fn check_places(settings: &VerifySettings) -> Result<(), VerifyError> {
    let VerifySettings { json_report, html, junit, sarif, badge, .. } = settings;
    for path in [json_report, html, junit, sarif, badge].into_iter().flatten() {
        let opened = OpenOptions::new().append(true).create(true).open(path);
        opened.map_err(|source| VerifyError::Write { path: path.clone(), source })?;
    }
    Ok(())
}

/// Prints the report, writes those that were asked for, and says what to end with.
pub(super) fn publish(
    settings: &VerifySettings,
    report: &ReportDocument,
    baseline: Option<&ReportDocument>,
    file: Option<&Path>,
) -> Result<ExaminationExit, VerifyError> {
    let mut out = io::stdout().lock();
    let colour = if out.is_terminal() { TerminalColour::Ansi } else { TerminalColour::Plain };
    out.write_all(render_terminal(report, colour).as_bytes())?;
    let comparison = baseline.map(|before| BaselineComparison::of(report, before));
    if let Some(comparison) = &comparison {
        write!(out, "\n{}", comparison.text())?;
    }
    out.flush()?;
    let file = file.map_or_else(|| NO_FILE.to_owned(), |file| file.display().to_string());
    write(settings.json_report.as_deref(), || report.to_json())?;
    write(settings.html.as_deref(), || Ok(render_html(report)))?;
    write(settings.junit.as_deref(), || Ok(render_junit(report)))?;
    write(settings.sarif.as_deref(), || render_sarif(report, &file))?;
    write(settings.badge.as_deref(), || Ok(render_badge(report)))?;
    Ok(comparison.map_or_else(|| report.basis().exit(), |comparison| comparison.exit))
}

fn write(
    path: Option<&Path>,
    text: impl FnOnce() -> Result<String, ReportFault>,
) -> Result<(), VerifyError> {
    let Some(path) = path else { return Ok(()) };
    let text = text().map_err(|source| VerifyError::Report { path: path.to_owned(), source })?;
    fs::write(path, text).map_err(|source| VerifyError::Write { path: path.to_owned(), source })
}

/// When it is, as reports say it.
pub(super) fn when() -> String {
    Timestamp::from(wall_clock()).to_string()
}
