//! `cargo xtask ci`: the one door. Every stage says its name and its duration.

use std::{
    env,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, ExitStatus, Stdio},
    time::{Duration, Instant},
};

use hapax_services::roster::{Service, Up};

use crate::{Failure, bench_guard::BenchGuard, fuzz::Fuzz, services, tidy};

/// Runs every stage in order and stops at the first failure.
///
/// Servers that it started are stopped in any case; the last line counts the tests.
pub fn run(root: &Path) -> Result<(), Failure> {
    stage("format", || cargo(root, &["fmt", "--all", "--check"]))?;
    stage("lint", || {
        let what = ["clippy", "--locked", "--workspace", "--all-targets", "--all-features"];
        cargo(root, &[&what[..], &["--", "-D", "warnings"]].concat())
    })?;
    stage("tidy", || tidy::run(root))?;
    stage("dependencies", || dependencies(root))?;
    stage("documentation", || {
        let mut command = command(root);
        command.args(["doc", "--locked", "--workspace", "--all-features", "--no-deps"]);
        succeed(command.env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    stage("simulate", || {
        let which = ["run", "--locked", "-p", "hapax-verify", "--bin", "hapax-sim"];
        cargo(root, &[&which[..], &["--", "--seeds", SEEDS]].concat())
    })?;
    stage("bench-guard", || BenchGuard::default().run(root))?;
    stage("fuzz", || Fuzz::all(FUZZ_SECONDS).run(root))?;
    let tally = stage("test", || with_services(root, &Service::ALL, || tests(root)))?;
    println!("\n{} passed, {} failed", tally.passed, tally.failed);
    Ok(())
}

/// Simulated runs that every change must survive; `cargo xtask sim` runs more.
const SEEDS: &str = "10000";
/// How long each target is fuzzed for every change; `cargo xtask fuzz` takes its time.
const FUZZ_SECONDS: u64 = 8;

fn stage<T>(name: &str, work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    println!("\n== {name}");
    let watch = Stopwatch::start();
    let done = work();
    let (verdict, seconds) = (if done.is_ok() { "ok" } else { "FAILED" }, watch.seconds());
    println!("== {name}: {verdict} in {seconds:.1} s");
    done.map_err(|failure| Failure::new(format!("{name}: {failure}")))
}

/// Licences and bans, where the tool for it is installed.
fn dependencies(root: &Path) -> Result<(), Failure> {
    let found = command(root).args(["deny", "--version"]).output();
    if found.is_ok_and(|output| output.status.success()) {
        return cargo(root, &["deny", "check", "bans", "licenses", "sources"]);
    }
    println!("skipped: cargo-deny is not installed");
    Ok(())
}

/// Does `work` while these servers run; those that it started are stopped in any case.
pub(crate) fn with_services<T>(
    root: &Path,
    needed: &[Service],
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
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
            Failure::new(format!("{} could not be stopped: {error}", service.name()))
        })?;
    }
    done
}

/// Runs all tests, doc tests included, shows what they print and counts them.
fn tests(root: &Path) -> Result<Tally, Failure> {
    let mut command = command(root);
    command.args(["test", "--locked", "--workspace", "--all-features", "--no-fail-fast"]);
    let mut child = command.stdout(Stdio::piped()).spawn().map_err(not_run)?;
    let mut tally = Tally::default();
    if let Some(output) = child.stdout.take() {
        for line in BufReader::new(output).split(b'\n') {
            let line = line.map_err(not_run)?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            tally.add(&line);
        }
    }
    let status = child.wait().map_err(not_run)?;
    tally.judge(status.success()).inspect_err(|_| {
        println!("\n{} passed, {} failed", tally.passed, tally.failed);
    })
}

/// How many tests passed and failed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many passed.
    pub passed: u64,
    /// How many failed.
    pub failed: u64,
}

impl Tally {
    /// Counts what a line of the test runner's output reports.
    pub fn add(&mut self, line: &str) {
        let Some((_, counts)) = line.trim().split_once("test result: ") else { return };
        for part in counts.split([';', '.']) {
            match part.trim().split_once(' ') {
                Some((number, "passed")) => self.passed += number.parse().unwrap_or(0),
                Some((number, "failed")) => self.failed += number.parse().unwrap_or(0),
                Some(_) | None => {}
            }
        }
    }

    /// The tally itself if the run counts as passed.
    pub fn judge(self, runner_succeeded: bool) -> Result<Self, Failure> {
        match (runner_succeeded, self.failed, self.passed) {
            (true, 0, 1..) => Ok(self),
            (true, 0, 0) => Err(Failure::new("no test ran")),
            (_, failed, _) => Err(Failure::new(format!("the test run failed ({failed} tests)"))),
        }
    }
}

pub(crate) fn cargo(root: &Path, args: &[&str]) -> Result<(), Failure> {
    succeed(command(root).args(args))
}

pub(crate) fn command(root: &Path) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).stdin(Stdio::null());
    command
}

pub(crate) fn succeed(command: &mut Command) -> Result<(), Failure> {
    let status = command.status().map_err(not_run)?;
    if status.success() { Ok(()) } else { Err(unsuccessful(command, status)) }
}

fn unsuccessful(command: &Command, status: ExitStatus) -> Failure {
    let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
    Failure::new(format!("`cargo {}` failed ({status})", args.join(" ")))
}

#[expect(clippy::needless_pass_by_value, reason = "the shape `map_err` calls")]
fn not_run(error: std::io::Error) -> Failure {
    Failure::new(format!("cargo could not be run: {error}"))
}

struct Stopwatch(Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "people wait for a stage in real time")]
    fn start() -> Self {
        Self(Instant::now())
    }

    fn seconds(&self) -> f64 {
        Duration::as_secs_f64(&self.0.elapsed())
    }
}
