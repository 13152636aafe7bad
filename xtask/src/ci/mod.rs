//! `cargo xtask ci`: the one door. Every stage says its name and its duration.

use std::{
    env,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use clap::{Args, builder::PossibleValuesParser};
use hapax_services::roster::{Service, Up};

use crate::{
    TaskFailure, bench_guard::BenchGuard, bench_peers, fuzz::Fuzz, services, site::Site, tidy,
};

mod features;
mod tally;
mod tests;
mod toolchain;
mod tools;
mod versions;

pub(crate) use self::tools::Tool;
pub use self::{tally::Tally, toolchain::RustVersion};

/// What is checked, and in which order.
const STAGES: [(&str, Stage); 13] = [
    ("format", |root| cargo(root, &["fmt", "--all", "--check"])),
    ("spelling", |root| tools::TYPOS.run(root, &[])),
    ("dependencies", dependencies),
    ("oldest-compiler", toolchain::check),
    ("lint", lint),
    ("tidy", tidy::run),
    ("site", |root| Site::default().run(root)),
    ("each-feature", features::check),
    ("peers", bench_peers::check),
    ("documentation", documentation),
    ("simulate", simulate),
    ("bench-guard", |root| BenchGuard::default().run(root)),
    ("fuzz", |root| Fuzz::all(FUZZ_SECONDS).run(root)),
];
/// The last stage, whose result is the last line.
const TEST: &str = "test";

type Stage = fn(&Path) -> Result<(), TaskFailure>;

/// What to check.
#[derive(Debug, Clone, Default, Args)]
pub struct Ci {
    /// Only these stages, in their usual order.
    #[arg(value_name = "STAGE", value_parser = PossibleValuesParser::new(names()))]
    only: Vec<String>,
}

fn names() -> impl Iterator<Item = &'static str> {
    STAGES.iter().map(|(name, _)| *name).chain([TEST])
}

impl Ci {
    /// Runs the stages in order and stops at the first failure.
    ///
    /// Servers that it started are stopped in any case; the last line counts the tests.
    pub fn run(&self, root: &Path) -> Result<(), TaskFailure> {
        for (name, work) in STAGES.iter().filter(|(name, _)| self.wants(name)) {
            stage(name, || work(root))?;
        }
        if self.wants(TEST) {
            let tally = stage(TEST, || with_services(root, &Service::ALL, || tests::run(root)))?;
            println!("\n{} passed, {} failed", tally.passed, tally.failed);
        }
        Ok(())
    }

    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| only == name)
    }
}

fn dependencies(root: &Path) -> Result<(), TaskFailure> {
    bench_peers::check_lock(root)?;
    let quiet = ["--locked", "--log-level", "error"];
    tools::DENY.run(root, &[&quiet[..], &["check", "bans", "licenses", "sources"]].concat())
}

fn lint(root: &Path) -> Result<(), TaskFailure> {
    let what = ["clippy", "--locked", "--workspace", "--all-targets", "--all-features"];
    cargo(root, &[&what[..], &["--", "-D", "warnings"]].concat())
}

fn documentation(root: &Path) -> Result<(), TaskFailure> {
    let mut command = command(root);
    command.args(["doc", "--locked", "--workspace", "--all-features", "--no-deps"]);
    succeed(command.env("RUSTDOCFLAGS", "-D warnings"))
}

/// Simulated runs that every change must survive; `cargo xtask sim` runs more.
const SEEDS: &str = "3000";
/// How long each target is fuzzed for every change; `cargo xtask fuzz` takes its time.
const FUZZ_SECONDS: u64 = 8;

/// Built with the features of the whole workspace, dependencies are those that the tests are built with.
fn simulate(root: &Path) -> Result<(), TaskFailure> {
    cargo(root, &["build", "--locked", "--workspace", "--all-features", "--bin", "hapax-sim"])?;
    let unusable = |error| TaskFailure::new(format!("the simulator cannot be run: {error}"));
    // Cargo puts what it builds beside this program.
    let program = env::current_exe().map_err(unusable)?.with_file_name("hapax-sim");
    succeed(Command::new(program).current_dir(root).args(["--seeds", SEEDS]))
}

fn stage<T>(name: &str, work: impl FnOnce() -> Result<T, TaskFailure>) -> Result<T, TaskFailure> {
    println!("\n== {name}");
    let watch = StepTimer::start();
    let done = work();
    let (verdict, seconds) = (if done.is_ok() { "ok" } else { "FAILED" }, watch.seconds());
    println!("== {name}: {verdict} in {seconds:.1} s");
    done.map_err(|failure| TaskFailure::new(format!("{name}: {failure}")))
}

/// What a stage needs and does not find: a failure where `CI` is `true`, a note for everybody else.
fn absent(what: &str) -> Result<(), TaskFailure> {
    if in_ci() {
        return Err(TaskFailure::new(what));
    }
    println!("skipped: {what}");
    Ok(())
}

/// Does `work` while these servers run; those that it started are stopped in any case.
pub(crate) fn with_services<T>(
    root: &Path,
    needed: &[Service],
    work: impl FnOnce() -> Result<T, TaskFailure>,
) -> Result<T, TaskFailure> {
    let mut started = Vec::new();
    let up = needed.iter().try_for_each(|&service| {
        let roster = services::roster(root).of(service);
        let up = roster.up().map_err(|error| services::unavailable(service, &error))?;
        println!("{} {up}", service.name());
        if let Up::Started { .. } = up {
            started.push((service, roster));
        }
        Ok(())
    });
    let done = up.and_then(|()| work());
    for (service, roster) in started {
        let stopped = roster.down();
        stopped.map_err(|error| {
            TaskFailure::new(format!("{} could not be stopped: {error}", service.name()))
        })?;
    }
    done
}

/// Where cargo puts what it builds: this program is in a folder of it.
pub(crate) fn target_dir() -> Result<PathBuf, TaskFailure> {
    let own = env::current_exe().map_err(not_run)?;
    Ok(own.ancestors().nth(2).unwrap_or_else(|| Path::new(".")).to_owned())
}

pub(crate) fn cargo(root: &Path, args: &[&str]) -> Result<(), TaskFailure> {
    succeed(command(root).args(args))
}

pub(crate) fn command(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).stdin(Stdio::null());
    if in_ci() {
        command.envs(BUILT_ONCE);
    }
    command
}

/// What only pays for itself where something is built again, or looked at by a debugger.
const BUILT_ONCE: [(&str, &str); 2] =
    [("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "0")];

pub(crate) fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|value| value == "true")
}

pub(crate) fn succeed(command: &mut Command) -> Result<(), TaskFailure> {
    let status = command.status().map_err(not_run)?;
    if status.success() { Ok(()) } else { Err(unsuccessful(command, status)) }
}

fn unsuccessful(command: &Command, status: ExitStatus) -> TaskFailure {
    let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    TaskFailure::new(format!(
        "`{} {}` failed ({status})",
        program.to_string_lossy(),
        args.join(" ")
    ))
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` calls")]
pub(crate) fn not_run(error: std::io::Error) -> TaskFailure {
    TaskFailure::new(format!("a command could not be run: {error}"))
}

struct StepTimer(Instant);

impl StepTimer {
    #[expect(clippy::disallowed_methods, reason = "people wait for a stage in real time")]
    fn start() -> Self {
        Self(Instant::now())
    }

    fn seconds(&self) -> f64 {
        Duration::as_secs_f64(&self.0.elapsed())
    }
}
