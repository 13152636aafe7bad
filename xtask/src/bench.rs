//! `cargo xtask bench`: Hapax beside what one would use instead, measured on this machine.

use std::{
    env,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
};

use clap::Args;

use crate::{TaskFailure, bench_sdk, ci::cargo};

/// What to type, for those who ask.
const EXAMPLES: &str = "\
Examples:
  cargo xtask bench all --quick               whether it works, in two minutes
  cargo xtask bench all --html report.html    everything, with charts
  cargo xtask bench http --ways nginx,sqlite  one comparison
  cargo xtask bench store --help              what a bench can be told
  cargo xtask bench sdk node go               packages beside the SQL functions called by hand
";

/// Which bench, and what it is told.
#[derive(Debug, Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLES)]
pub struct Bench {
    /// `store`, `tx`, `http`, `outbox`, `client`, `curves` or `all`, and what it is told; passed on as
    /// they are. `sdk`, and which packages.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<String>,
}

impl Bench {
    /// Builds the benches and the program `hapax` that they start, and becomes the benches: an
    /// interrupt and the exit status are theirs.
    pub fn run(&self, root: &Path) -> Result<(), TaskFailure> {
        if let [first, sdks @ ..] = &self.args[..]
            && first == "sdk"
        {
            return bench_sdk::run(root, sdks);
        }
        let packages = ["--package", "hapax-cli", "--package", "hapax-bench"];
        cargo(
            root,
            &[&["build", "--locked", "--profile", PROFILE, "--bins"], &packages[..]].concat(),
        )?;
        let failed = Command::new(built()?).args(&self.args).exec();
        Err(TaskFailure::new(format!("the benches cannot be run: {failed}")))
    }
}

/// How the benches and the program are compiled.
const PROFILE: &str = "dist";

/// What cargo built under the profile, which has a folder beside ours.
fn built() -> Result<PathBuf, TaskFailure> {
    let own = env::current_exe();
    let own =
        own.map_err(|error| TaskFailure::new(format!("the benches cannot be found: {error}")))?;
    let target = own.ancestors().nth(2).unwrap_or_else(|| Path::new("."));
    Ok(target.join(PROFILE).join("hapax-bench"))
}
