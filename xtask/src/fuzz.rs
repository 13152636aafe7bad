//! `cargo xtask fuzz`: bytes nobody thought of, for everything that reads what others wrote.
//!
//! Each target checks what must be true of whatever it is given, not only that it does not panic.

use std::{
    env, fs,
    panic::resume_unwind,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use clap::{Args, builder::PossibleValuesParser};

use crate::{
    TaskFailure,
    ci::{command, succeed},
};

const TARGETS: [&str; 6] = ["answer", "config", "json", "key", "record", "request"];
/// Largest input that is made, in bytes: longer ones say little more and take longer.
const INPUT_BYTES_MAX: u32 = 4096;
/// How long one input may take, in seconds.
const INPUT_SECONDS_MAX: u32 = 5;

/// What to fuzz, and for how long.
#[derive(Debug, Clone, Args)]
pub struct Fuzz {
    /// Only this target.
    #[arg(value_parser = PossibleValuesParser::new(TARGETS))]
    target: Option<String>,
    /// Only these inputs, once each: what an earlier run left in testing/fuzz/found.
    #[arg(requires = "target", value_name = "FILE")]
    inputs: Vec<PathBuf>,
    /// How long each target runs, in seconds.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: u64,
}

impl Fuzz {
    /// Every target, for this many seconds each.
    pub fn all(seconds: u64) -> Self {
        Self { target: None, inputs: Vec::new(), seconds }
    }

    /// Builds the targets and runs those that were asked for, up to the first finding.
    pub fn run(&self, root: &Path) -> Result<(), TaskFailure> {
        build(root)?;
        let home = root.join("testing/fuzz");
        let wanted = |target: &&str| self.target.as_deref().is_none_or(|only| only == *target);
        let targets: Vec<_> = TARGETS.into_iter().filter(wanted).collect();
        let at_once = thread::available_parallelism().map_or(1, usize::from);
        targets.chunks(at_once).try_for_each(|targets| self.run_together(&home, targets))
    }

    /// Each target keeps one core busy.
    fn run_together(&self, home: &Path, targets: &[&str]) -> Result<(), TaskFailure> {
        thread::scope(|scope| {
            let run = |target| scope.spawn(move || self.run_one(home, target));
            let running: Vec<_> = targets.iter().copied().map(run).collect();
            let mut ended = running.into_iter().map(thread::ScopedJoinHandle::join);
            ended.try_for_each(|ended| ended.unwrap_or_else(|panic| resume_unwind(panic)))
        })
    }

    fn run_one(&self, home: &Path, target: &str) -> Result<(), TaskFailure> {
        let unusable = |error| TaskFailure::new(format!("{target} cannot be run: {error}"));
        // Cargo puts what it builds beside this program.
        let program = env::current_exe().map_err(unusable)?.with_file_name(target);
        let mut command = Command::new(program);
        if self.inputs.is_empty() {
            let found = home.join("found").join(target);
            fs::create_dir_all(&found).map_err(unusable)?;
            command.arg(format!("-max_total_time={}", self.seconds));
            command.arg(format!("-max_len={INPUT_BYTES_MAX}"));
            command.arg(format!("-timeout={INPUT_SECONDS_MAX}"));
            command.arg(format!("-artifact_prefix={}/", home.join("found").display()));
            command.args(["-verbosity=0", "-print_final_stats=1"]);
            command.arg(found).arg(home.join("seeds").join(target));
        } else {
            command.args(&self.inputs);
        }
        let ended = command.output().map_err(unusable)?;
        println!("-- {target}\n{}", String::from_utf8_lossy(&ended.stderr));
        if ended.status.success() {
            return Ok(());
        }
        let again = format!("`cargo xtask fuzz {target} FILE` runs what was found again");
        Err(TaskFailure::new(format!("{target} does not hold for every input; {again}")))
    }
}

/// Builds every target so that the fuzzer sees which branches of our own crates an input takes.
///
/// With the features of the whole workspace, dependencies are those that the tests are built with.
fn build(root: &Path) -> Result<(), TaskFailure> {
    let mut cargo = command(root);
    cargo.args(["build", "--locked", "--workspace", "--all-features"]);
    cargo.args(TARGETS.iter().flat_map(|target| ["--bin", *target]));
    succeed(cargo.env("RUSTC_WORKSPACE_WRAPPER", root.join("testing/fuzz/coverage.sh")))
}
