//! `cargo xtask bench-guard`: no hot path takes more instructions than the committed figures allow.
//!
//! Instructions are counted by callgrind, which simulates the processor: a busy machine does not
//! change them, so that a few per cent are seen where a stopwatch would see noise.

use std::{collections::BTreeMap, env, fs, path::Path};

use clap::Args;

use self::{
    callgrind::Program,
    compare::{Comparison, Limit},
    figures::{GuardFigures, InstructionCount},
    tools::CountingTools,
};
use crate::{
    TaskFailure,
    ci::{command, succeed},
};

pub mod callgrind;
pub mod compare;
pub mod figures;
pub mod tools;

const FIGURES: &str = "testing/bench-guard/figures.toml";
/// What the figures are counted on; elsewhere the same code is other instructions.
const MACHINE: (&str, &str) = ("x86_64", "linux");

/// What to do about figures that changed.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct BenchGuard {
    /// Takes what is counted now as the new figures; say in the commit why they rose.
    #[arg(long)]
    accept: bool,
}

impl BenchGuard {
    /// Counts the instructions of every hot path and compares them with the committed figures.
    pub fn run(self, root: &Path) -> Result<(), TaskFailure> {
        if (env::consts::ARCH, env::consts::OS) != MACHINE {
            println!("skipped: the figures are for {} on {}", MACHINE.0, MACHINE.1);
            return Ok(());
        }
        let tools = CountingTools::find_or_install(root)?;
        build(root)?;
        let program = Program::built()?;
        let mut counted = BTreeMap::new();
        for path in program.paths()? {
            counted.insert(path.name.clone(), program.count(&path)?);
        }
        let file = root.join(FIGURES);
        if self.accept {
            let text = GuardFigures { tools, paths: counted }.to_string();
            fs::write(&file, text).map_err(|error| unusable("written", &error))?;
            println!("{FIGURES} holds what was counted now");
            return Ok(());
        }
        let text = fs::read_to_string(&file).map_err(|error| unusable("read", &error))?;
        let committed = GuardFigures::parse(&text)?;
        judge(&committed, &tools, &counted, &program)
    }
}

/// Builds for any processor of the kind, whatever the user asks for otherwise.
fn build(root: &Path) -> Result<(), TaskFailure> {
    let mut cargo = command(root);
    cargo.args(["build", "--locked", "--package", "hapax-bench-guard", "--profile", "guard"]);
    succeed(cargo.env("CARGO_ENCODED_RUSTFLAGS", ""))
}

fn judge(
    committed: &GuardFigures,
    tools: &CountingTools,
    counted: &BTreeMap<String, InstructionCount>,
    program: &Program,
) -> Result<(), TaskFailure> {
    let differing = committed.tools.differences(tools);
    for difference in &differing {
        println!("note: {difference}");
    }
    let limit = if differing.is_empty() { Limit::SAME_TOOLS } else { Limit::OTHER_TOOLS };
    let comparison = Comparison::new(&committed.paths, counted, limit);
    print!("{comparison}");
    comparison.judge().inspect_err(|_| {
        println!("where they are spent: callgrind_annotate {}/PATH.out", program.profiles());
    })
}

fn unusable(done: &str, error: &std::io::Error) -> TaskFailure {
    TaskFailure::new(format!("{FIGURES} cannot be {done}: {error}"))
}
