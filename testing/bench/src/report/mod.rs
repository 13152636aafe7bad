//! What is told: tables for people, JSON for programs, and a page with drawings.

mod html;
mod plot;

use std::{
    env, fs,
    io::{self, Write},
    path::Path,
};

pub(super) use hapax_cli::plot::{Axis, Plot, Point, Scale, Series};
use hapax_cli::table;
use serde_json::{Value, json};

use self::plot::plot_json;
use super::{FiguresVerdict, error::BenchError, figures::BoundedFigure, machine::Fact};

/// Everything that was measured.
pub(super) struct BenchReport {
    /// Which bench.
    pub(super) title: &'static str,
    /// What was typed.
    command: String,
    pub(super) facts: Vec<Fact>,
    pub(super) absent: Vec<Absent>,
    pub(super) parts: Vec<BenchPart>,
    /// Somebody ended it before it was done.
    pub(super) cut_short: bool,
}

/// Something that was not measured.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Absent {
    pub(super) what: &'static str,
    pub(super) why: String,
    /// It should have been possible here.
    pub(super) is_failure: bool,
}

/// What one bench showed.
pub(super) struct BenchPart {
    pub(super) bench: &'static str,
    pub(super) sections: Vec<ReportSection>,
}

/// One table, and what follows from it.
#[derive(Default)]
pub(super) struct ReportSection {
    pub(super) title: String,
    pub(super) header: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) claims: Vec<BoundedFigure>,
    pub(super) plots: Vec<Plot>,
    /// What makes the figures worthless.
    pub(super) invalid: Vec<String>,
    /// Every measurement.
    pub(super) data: Value,
}

impl BenchReport {
    pub(super) fn new(title: &'static str, facts: Vec<Fact>) -> Self {
        let (absent, parts) = (Vec::new(), Vec::new());
        Self { title, command: command(), facts, absent, parts, cut_short: false }
    }

    pub(super) fn verdict(&self) -> FiguresVerdict {
        let failed = self.absent.iter().any(|absent| absent.is_failure);
        if self.is_valid() && !failed && !self.cut_short {
            FiguresVerdict::Valid
        } else {
            FiguresVerdict::Invalid
        }
    }

    fn is_valid(&self) -> bool {
        self.sections().all(|(_, section)| section.invalid.is_empty())
    }

    fn sections(&self) -> impl Iterator<Item = (&'static str, &ReportSection)> {
        let of = |part: &'_ BenchPart| part.bench;
        self.parts.iter().flat_map(move |part| {
            let bench = of(part);
            part.sections.iter().map(move |section| (bench, section))
        })
    }

    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let head: Vec<[String; 2]> =
            self.head().into_iter().map(|(name, value)| [name.to_owned(), value]).collect();
        table::columns(out, &head)?;
        for part in &self.parts {
            if self.parts.len() > 1 {
                writeln!(out, "\n== {} ==", part.bench)?;
            }
            for section in &part.sections {
                section.print(out)?;
            }
        }
        out.flush()
    }

    /// What stands over the figures.
    fn head(&self) -> Vec<Fact> {
        let mut head = vec![("command", self.command.clone())];
        head.extend(self.facts.iter().cloned());
        head.extend(
            self.absent.iter().map(|absent| (absent.what, format!("not measured: {}", absent.why))),
        );
        if self.cut_short {
            head.push(("CUT SHORT", "ended before everything was measured".to_owned()));
        }
        head
    }

    pub(super) fn save_json(&self, path: &Path) -> Result<(), BenchError> {
        let facts: serde_json::Map<String, Value> =
            self.facts.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let absent: serde_json::Map<String, Value> =
            self.absent.iter().map(|absent| (absent.what.to_owned(), json!(absent.why))).collect();
        let sections: Vec<Value> =
            self.sections().map(|(bench, section)| section.json(bench)).collect();
        let report = json!({
            "version": 1,
            "bench": self.title,
            "command": self.command,
            "valid": self.is_valid(),
            "cut_short": self.cut_short,
            "machine": facts,
            "not_measured": absent,
            "sections": sections,
        });
        write(path, "--json", &format!("{report:#}\n"))
    }

    pub(super) fn save_html(&self, path: &Path) -> Result<(), BenchError> {
        write(path, "--html", &html::page(self))
    }

    /// Writes each chart into a file of its own, named after what it shows.
    pub(super) fn save_plots(&self, directory: &Path) -> Result<(), BenchError> {
        const OPTION: &str = "--plots";
        let made = fs::create_dir_all(directory);
        made.map_err(|source| unsaved(directory, OPTION, source))?;
        for (bench, section) in self.sections() {
            for plot in &section.plots {
                let Some(drawing) = plot.draw() else { continue };
                let file = directory.join(file_name(bench, &plot.title));
                write(&file, OPTION, &drawing.alone())?;
            }
        }
        Ok(())
    }
}

fn file_name(bench: &str, title: &str) -> String {
    let title = title.to_lowercase();
    let words = title.split(|char: char| !char.is_ascii_alphanumeric());
    let words: Vec<&str> =
        std::iter::once(bench).chain(words.filter(|word| !word.is_empty())).collect();
    words.join("-") + ".svg"
}

fn write(path: &Path, option: &'static str, text: &str) -> Result<(), BenchError> {
    fs::write(path, text).map_err(|source| unsaved(path, option, source))
}

fn unsaved(path: &Path, option: &'static str, source: io::Error) -> BenchError {
    BenchError::Unsaved { path: path.to_owned(), option, source }
}

/// What people type, but for passwords.
fn command() -> String {
    let words = env::args().skip(1).map(without_password);
    std::iter::once("cargo xtask bench".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}

fn without_password(word: String) -> String {
    match (word.find("://"), word.rfind('@')) {
        (Some(start), Some(end)) if start < end => {
            format!("{}://…{}", &word[..start], &word[end..])
        }
        _ => word,
    }
}

impl ReportSection {
    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let invalid = if self.invalid.is_empty() { "" } else { " INVALID" };
        writeln!(out, "\n{}{invalid}", self.title)?;
        table::print(out, &self.header, &self.rows)?;
        for claim in &self.claims {
            writeln!(out, "  - {claim}")?;
        }
        for reason in &self.invalid {
            writeln!(out, "  INVALID: {reason}")?;
        }
        Ok(())
    }

    fn json(&self, bench: &str) -> Value {
        json!({
            "bench": bench,
            "title": self.title,
            "claims": self.claims.iter().map(BoundedFigure::json).collect::<Vec<_>>(),
            "plots": self.plots.iter().map(plot_json).collect::<Vec<_>>(),
            "invalid": self.invalid,
            "data": self.data,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(invalid: &[&str]) -> BenchReport {
        let invalid = invalid.iter().map(|reason| (*reason).to_owned()).collect();
        let sections = vec![ReportSection { invalid, ..ReportSection::default() }];
        let mut report = BenchReport::new("store", Vec::new());
        report.parts.push(BenchPart { bench: "store", sections });
        report
    }

    #[test]
    fn a_report_is_believed_if_all_of_it_is_right_and_there() {
        assert_eq!(report(&[]).verdict(), FiguresVerdict::Valid);
        assert_eq!(report(&["why"]).verdict(), FiguresVerdict::Invalid);
        assert_eq!(
            BenchReport { cut_short: true, ..report(&[]) }.verdict(),
            FiguresVerdict::Invalid
        );
    }

    #[test]
    fn what_a_machine_need_not_have_makes_no_report_wrong() {
        for (is_failure, verdict) in
            [(false, FiguresVerdict::Valid), (true, FiguresVerdict::Invalid)]
        {
            let absent = vec![Absent { what: "nginx", why: "not found".to_owned(), is_failure }];
            assert_eq!(BenchReport { absent, ..report(&[]) }.verdict(), verdict);
        }
    }

    #[test]
    fn a_password_is_not_repeated() {
        assert_eq!(without_password("postgres://u:p@h/d".to_owned()), "postgres://…@h/d");
        assert_eq!(without_password("--quick".to_owned()), "--quick");
    }
}
