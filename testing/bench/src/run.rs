//! One run of one bench or of several: what they share, and what came out.

use std::{io, path::Path, sync::Arc};

use tempfile::TempDir;

use super::{
    FiguresVerdict,
    error::BenchError,
    machine::{self, Fact},
    plan::PostgresChoice,
    progress::BenchProgress,
    report::{Absent, BenchPart, BenchReport, ReportSection},
    sample,
    server::BenchServer,
};
use crate::args::ReportArgs;

pub(super) struct BenchRun {
    pub(super) progress: BenchProgress,
    server: Option<Arc<BenchServer>>,
    report: BenchReport,
    directory: TempDir,
}

impl BenchRun {
    /// Makes a directory, and reads what is known of the machine.
    pub(super) fn start(title: &'static str) -> Result<Self, BenchError> {
        let directory = tempfile::Builder::new().prefix("hapax-bench-").tempdir();
        let directory = directory.map_err(BenchError::Directory)?;
        let progress = BenchProgress::start()?;
        let report = BenchReport::new(title, machine::facts(directory.path())?);
        Ok(Self { progress, server: None, report, directory })
    }

    /// Another bench begins, known by this name.
    pub(super) fn bench(&mut self, name: &'static str, shown: String) {
        self.progress.bench(shown);
        self.report.parts.push(BenchPart { bench: name, sections: Vec::new() });
    }

    /// Where files are made. Everything in it is removed in the end.
    pub(super) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The PostgreSQL server that was asked for, the same for all benches; its facts are noted.
    pub(super) fn postgres(
        &mut self,
        asked: &PostgresChoice,
    ) -> Result<Arc<BenchServer>, BenchError> {
        if let Some(server) = &self.server {
            return Ok(Arc::clone(server));
        }
        let server = Arc::new(BenchServer::needed(asked)?);
        for fact in sample::workers()?.block_on(server.facts())? {
            self.note(fact);
        }
        self.server = Some(Arc::clone(&server));
        Ok(server)
    }

    /// The same where it can be done without: if it is not there, the report says so.
    pub(super) fn postgres_if_there(
        &mut self,
        asked: &PostgresChoice,
    ) -> Result<Option<Arc<BenchServer>>, BenchError> {
        match self.postgres(asked) {
            Ok(server) => Ok(Some(server)),
            Err(BenchError::OnlyPostgres) => {
                self.note(("PostgreSQL", "not measured: --postgres none".to_owned()));
                Ok(None)
            }
            Err(error) if error.is_absence() => {
                self.miss("PostgreSQL", &error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Something that has to be known beside the figures.
    pub(super) fn note(&mut self, fact: Fact) {
        if !self.report.facts.contains(&fact) {
            self.report.facts.push(fact);
        }
    }

    /// Something that is not measured, and why.
    pub(super) fn miss(&mut self, what: &'static str, why: &BenchError) {
        let absent = Absent { what, why: crate::sentence(why), is_failure: !why.is_absence() };
        if !self.report.absent.contains(&absent) {
            self.report.absent.push(absent);
        }
    }

    /// A table is complete.
    pub(super) fn add(&mut self, section: ReportSection) {
        if let Some(part) = self.report.parts.last_mut() {
            part.sections.push(section);
        }
    }

    /// Tells what came out: prints it, and saves it where files are named.
    pub(super) fn finish(mut self, output: &ReportArgs) -> Result<FiguresVerdict, BenchError> {
        self.progress.finish();
        self.report.cut_short = self.progress.is_interrupted();
        // A bench that showed nothing is named as absent, or was not reached.
        self.report.parts.retain(|part| !part.sections.is_empty());
        let report = &self.report;
        report.print(&mut io::stdout().lock()).map_err(BenchError::Print)?;
        if let Some(path) = &output.json {
            report.save_json(path)?;
        }
        if let Some(path) = &output.html {
            report.save_html(path)?;
        }
        if let Some(directory) = &output.plots {
            report.save_plots(directory)?;
        }
        Ok(report.verdict())
    }
}
