//! The committed figures.

use std::{collections::BTreeMap, fmt};

use serde::Deserialize;

use super::tools::CountingTools;
use crate::TaskFailure;

/// What each hot path may take, and what that was counted with.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GuardFigures {
    /// What they were counted with.
    pub tools: CountingTools,
    /// The instructions of each path, by its name.
    pub paths: BTreeMap<String, InstructionCount>,
}

/// The instructions of one round of a path.
///
/// Hashing is counted by itself: the processor that valgrind shows has no instructions for it, so
/// that it takes far more of others than on most servers, and would hide everything else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstructionCount {
    /// All but hashing.
    pub instructions: u64,
    /// SHA-256 alone.
    #[serde(default)]
    pub hashing: u64,
}

impl GuardFigures {
    /// Reads the file.
    pub fn parse(text: &str) -> Result<Self, TaskFailure> {
        toml::from_str(text).map_err(|error| TaskFailure::new(format!("figures.toml: {error}")))
    }
}

/// The text of the file.
impl fmt::Display for GuardFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CountingTools { rustc, libc, valgrind, cpu } = &self.tools;
        writeln!(f, "# Instructions of one round of each hot path.")?;
        writeln!(f, "# Written by `cargo xtask bench-guard --accept`, not by hand.\n")?;
        writeln!(f, "[tools]\nrustc = {rustc:?}\nlibc = {libc:?}")?;
        writeln!(f, "valgrind = {valgrind:?}\ncpu = {cpu:?}")?;
        for (name, InstructionCount { instructions, hashing }) in &self.paths {
            writeln!(f, "\n[paths.{name}]\ninstructions = {instructions}")?;
            if *hashing > 0 {
                writeln!(f, "hashing = {hashing}")?;
            }
        }
        Ok(())
    }
}
