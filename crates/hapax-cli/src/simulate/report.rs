//! What is told: tables for a terminal.

use std::io::{self, Write};

use super::plot::Chart;

/// Everything that came out of one command.
pub(super) struct Report {
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
    pub(super) chart: Chart,
}

impl Report {
    pub(super) fn charts(&self) -> Vec<&Chart> {
        self.sections.iter().map(|section| &section.chart).collect()
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
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(String::len).chain(self.header.get(column).map(|name| name.len())).max()
        };
        let widths: Vec<usize> = (0..self.header.len()).filter_map(width).collect();
        let header: Vec<String> = self.header.iter().map(|name| (*name).to_owned()).collect();
        for row in std::iter::once(&header).chain(&self.rows) {
            let cells = row.iter().zip(&widths).enumerate().map(|(at, (cell, width))| match at {
                0 => format!("  {cell:width$}"),
                _ => format!("  {cell:>width$}"),
            });
            writeln!(out, "{}", cells.collect::<String>().trim_end())?;
        }
        Ok(())
    }
}

/// A whole number as people write it: 1,234,567.
pub(super) fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
