//! What a computation came to: tables for a terminal, tables and charts on a page.

mod page;

use std::io::{self, Write};

use hapax_cli::plot::Svg;

pub(crate) use self::page::html;

use crate::table;

/// Everything that came out of one command.
pub(crate) struct ChartedReport {
    pub(crate) title: &'static str,
    /// What was asked, so that it can be repeated.
    pub(crate) subject: String,
    pub(crate) sections: Vec<Section>,
}

/// One table, and its plot.
pub(crate) struct Section {
    pub(crate) title: &'static str,
    pub(crate) header: Vec<&'static str>,
    pub(crate) rows: Vec<Vec<String>>,
    /// What the table is about.
    pub(crate) notes: Vec<String>,
    pub(crate) chart: Option<Svg>,
}

impl ChartedReport {
    pub(crate) fn charts(&self) -> impl Iterator<Item = &Svg> {
        self.sections.iter().filter_map(|section| section.chart.as_ref())
    }

    pub(crate) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}: {}", self.title, self.subject)?;
        for section in &self.sections {
            section.print(out)?;
        }
        out.flush()
    }
}

impl Section {
    fn print(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "\n{}", self.title)?;
        for note in &self.notes {
            writeln!(out, "  {note}")?;
        }
        table::print(out, &self.header, &self.rows)
    }
}
