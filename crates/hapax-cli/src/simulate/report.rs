//! What is told: tables for a terminal.

use std::io::{self, Write};

use hapax_cli::plot::Svg;

use crate::table;

/// Everything that came out of one command.
pub(super) struct SimulationReport {
    pub(super) title: &'static str,
    /// What was simulated, so that it can be repeated.
    pub(super) subject: String,
    pub(super) sections: Vec<Section>,
}

/// One table, and its plot.
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) header: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    /// What the table is about.
    pub(super) notes: Vec<String>,
    pub(super) chart: Option<Svg>,
}

impl SimulationReport {
    pub(super) fn charts(&self) -> impl Iterator<Item = &Svg> {
        self.sections.iter().filter_map(|section| section.chart.as_ref())
    }

    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
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
