//! What is told: tables for people, JSON for programs.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

use serde_json::{Value, json};

use super::{error::BenchError, figures::Claim, machine::Fact};
use crate::table;

/// Everything that was measured.
pub(super) struct Report {
    pub(super) facts: Vec<Fact>,
    pub(super) sections: Vec<Section>,
}

/// One table, and what follows from it.
pub(super) struct Section {
    pub(super) title: String,
    pub(super) header: Vec<&'static str>,
    pub(super) rows: Vec<Vec<String>>,
    pub(super) claims: Vec<Claim>,
    /// What makes the figures worthless.
    pub(super) invalid: Vec<String>,
    /// Every measurement.
    pub(super) data: Value,
}

impl Report {
    pub(super) fn is_valid(&self) -> bool {
        self.sections.iter().all(|section| section.invalid.is_empty())
    }

    pub(super) fn print(&self, out: &mut impl Write) -> io::Result<()> {
        let width = self.facts.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in &self.facts {
            writeln!(out, "{name:width$}  {value}")?;
        }
        for section in &self.sections {
            section.print(out)?;
        }
        out.flush()
    }

    pub(super) fn save(&self, path: &Path) -> Result<(), BenchError> {
        let facts: serde_json::Map<String, Value> =
            self.facts.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        let sections: Vec<Value> = self.sections.iter().map(Section::json).collect();
        let report = json!({ "version": 1, "valid": self.is_valid(), "machine": facts, "sections": sections });
        let written = fs::write(path, format!("{report:#}\n"));
        written.map_err(|source| BenchError::Json { path: path.to_owned(), source })
    }
}

impl Section {
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

    fn json(&self) -> Value {
        json!({
            "title": self.title,
            "claims": self.claims.iter().map(Claim::json).collect::<Vec<_>>(),
            "invalid": self.invalid,
            "data": self.data,
        })
    }
}
